"""Checks of data before any work is done; messages name the argument, the position, the value, and what to do."""

import warnings
from collections.abc import Sequence

import numpy as np

from aevb.data.counts import check_counts
from aevb.matrices import Place, check_finite, column_label, counted, refuse, row_blocks
from aevb.models import LIKELIHOODS, is_sparse

ROUNDING = 1e-12  # relative to a column's magnitude in float64: smaller differences come from rounding
MIN_PIXELS = 64  # columns needed to treat whole numbers that are not bytes as grey levels of images
LEVEL_ROUNDING = 1e-3  # of a level of 8 bits, from computing k/255 in float32
FAR = 1000  # standard deviations from 0; beyond, float32 leaves less than five digits for the variation


def check_rows(
    X: np.ndarray,
    likelihood: str | None,
    *,
    scale: float = 1.0,
    name: str = "X",
    row_numbers: Sequence[int] | np.ndarray | None = None,
    columns: Sequence[str] | None = None,
) -> None:
    """Check the values of a data matrix for a likelihood.

    Args:
        X: (N, D), numbers.
        likelihood: A key of ``LIKELIHOODS``; None for one that accepts any number.
        scale: Factor for stored values.
        name: Name of the data that the rows belong to, for the message.
        row_numbers: (N,), the indices of the rows in these data, if not 0, 1, ...
        columns: (D,), the column names, if there are any.

    Raises:
        ValueError: A value is not allowed; the message gives the first one, its row and its column.
    """
    place = Place(name, row_numbers, columns)
    if likelihood is not None and LIKELIHOODS[likelihood].counts:
        return check_counts(X, place)
    check_finite(X, place)
    if likelihood is not None and LIKELIHOODS[likelihood].unit_interval and (X.min() < 0 or X.max() * scale > 1):
        advice = "divide pixels by 255, use sklearn.preprocessing.MinMaxScaler, or set likelihood='gaussian'"
        reason = f"likelihood='{likelihood}' expects values in [0, 1]"
        refuse(X, place, lambda x: (x < 0) | (x * scale > 1), reason, advice)
    if likelihood is not None and LIKELIHOODS[likelihood].levels and X.dtype != np.uint8 and X.dtype != np.bool_:
        reason = f"likelihood='{likelihood}' expects 8-bit levels, k/255"
        advice = "give pixels as bytes, X.astype('uint8'), or set likelihood='sigmoid-gaussian'"
        refuse(X, place, lambda x: np.abs(255 * x - np.round(255 * x)) > LEVEL_ROUNDING, reason, advice)


def warn_about_empty_rows(X: np.ndarray) -> None:
    """Warn of rows (n, D) in which all values are missing: log p of no values is 0, so they look likely."""
    may_miss = np.issubdtype(X.dtype, np.floating) and not is_sparse(X)
    num_empty = np.count_nonzero(np.isnan(X).all(axis=1)) if may_miss else 0
    if num_empty:
        have = "has" if num_empty == 1 else "have"
        warnings.warn(
            f"X: {num_empty:,} of {len(X):,} rows {have} no observed value, and 0 nats, as if they were very likely. "
            "Leave such rows out of averages and rankings.",
            UserWarning,
            stacklevel=3,
        )


def check_columns_vary(low: np.ndarray, high: np.ndarray, columns: Sequence[str] | None = None) -> None:
    """Refuse columns that are constant up to rounding: a Gaussian likelihood is unbounded there.

    Args:
        low: (D,), the smallest value of each column.
        high: (D,), the largest.
        columns: (D,), the column names, if there are any.
    """
    constant = np.flatnonzero(are_constant(low, high))
    low, high = low.astype(np.float64), high.astype(np.float64)
    if constant.size:
        column = constant[0]
        values = f"every row has {low[column]}"
        if low[column] != high[column]:
            values = f"all rows lie between {low[column]} and {high[column]}, equal up to rounding"
        label, count = column_label(column, columns), counted(constant.size, "such column")
        raise ValueError(
            f"X: {label} is constant ({values}; {count}). Under a Gaussian likelihood its density "
            f"is unbounded. {_constant_advice(low, high, column)}"
        )


def _constant_advice(low, high, column):
    """Return what to do about a constant column: images need a unit, tables one column less."""
    drop = "Drop it with sklearn.feature_selection.VarianceThreshold()"
    if low[column] != high[column]:
        drop += ", or rescale it with sklearn.preprocessing.StandardScaler()"
    if low.min() >= 0 and 1 < high.max() <= 255:
        return f"If these are grey levels from 0 to 255, give X / 255 or X.astype('uint8'). {drop}."
    are_whole = not (np.any(low % 1) or np.any(high % 1))
    if len(low) >= MIN_PIXELS and low.min() >= 0 and 255 < high.max() <= 65535 and are_whole:
        return "If these are 16-bit grey levels, give X / 65535: pixels in one unit may be constant."
    return f"{drop}."


def are_constant(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return which columns (D,), with these smallest and largest values, are constant up to rounding."""
    rounding = ROUNDING if low.dtype == np.float64 else 4 * np.finfo(np.float32).eps
    low, high = low.astype(np.float64), high.astype(np.float64)
    return high - low <= np.maximum(rounding * np.maximum(abs(low), abs(high)), np.finfo(np.float32).tiny)


def column_units(
    X: np.ndarray, weights: np.ndarray | None = None, *, is_shared: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns' means and standard deviations, of rows with weights if they are given; see `units_of`."""
    if weights is None:
        mean = X.mean(axis=0, dtype=np.float64)
        squares = np.sum([np.square(block - mean).sum(axis=0) for block in row_blocks(X)], axis=0)
        return units_of(mean, squares / len(X), is_shared=is_shared)
    shares = weights / weights.sum()
    parts = np.split(shares, np.cumsum([len(block) for block in row_blocks(X)])[:-1])
    mean = np.sum([part @ block for part, block in zip(parts, row_blocks(X), strict=True)], axis=0)
    variance = np.sum(
        [part @ np.square(block - mean) for part, block in zip(parts, row_blocks(X), strict=True)], axis=0
    )
    return units_of(mean, variance, is_shared=is_shared)


def units_of(mean: np.ndarray, variance: np.ndarray, *, is_shared: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations.

    Args:
        mean: (D,).
        variance: (D,).
        is_shared: Whether all columns share one standard deviation, the root of their average variance, as suits
            pixels: a Gaussian decoder's standard deviations are limited in these units, so that those of pixels that
            hardly vary stay away from 0. Otherwise each column has its own; that of a constant column is 1.
    """
    variance = np.full_like(variance, np.mean(variance)) if is_shared else variance
    return mean, np.sqrt(np.where(variance > 0, variance, 1.0))


def offset_of(units: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray | None:
    """Return what must be subtracted from the columns before computing in float32, if anything.

    In float32, a column far from 0 has few digits left for its variation: N(1e7, 1) takes eight values. Its mean is
    subtracted in float64, and added to the model's output.

    Args:
        units: Means and standard deviations of the columns, (D,) each.

    Returns:
        (D,): the means of the columns whose mean is over 1,000 times their standard deviation, 0 for others; None if
        there are no such columns.
    """
    if units is None:
        return None
    mean, std = units
    is_far = np.abs(mean) > FAR * std
    return np.where(is_far, mean, 0.0) if is_far.any() else None


def minus(X: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
    """Return X minus the columns' offset, in float64; X itself if there is none."""
    return X if offset is None else X - offset


def scaled(units: tuple[np.ndarray, np.ndarray], scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the units of columns whose stored values are multiplied by a scale."""
    mean, std = units
    return mean * scale, std * scale
