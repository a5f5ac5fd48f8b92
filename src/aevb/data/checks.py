"""Checks of data before any work is done; messages name the argument, the position, the value, and what to do."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from aevb.data.table import block_rows
from aevb.errors import WrongTypeError, shown
from aevb.models import LIKELIHOODS

ROUNDING = 1e-12  # relative to a column's magnitude in float64: smaller differences come from rounding
MIN_PIXELS = 64  # columns needed to treat whole numbers that are not bytes as grey levels of images
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
    place = name, range(len(X)) if row_numbers is None else row_numbers, columns
    if np.issubdtype(X.dtype, np.floating):
        reason, advice = "infinity is not allowed here", "correct those values, or drop those rows"
        if X.size and np.isnan(X.min()):
            reason, advice = "NaN and infinity are not allowed here", "drop or fill those rows"
        _refuse(X, place, lambda x: ~np.isfinite(x), reason, advice)
        if X.dtype == np.float64:
            limit = np.finfo(np.float32).max
            reason = "the model computes in float32, whose range it exceeds"
            _refuse(X, place, lambda x: np.abs(x) > limit, reason, "rescale the column")
    if likelihood is not None and LIKELIHOODS[likelihood].unit_interval and (X.min() < 0 or X.max() * scale > 1):
        advice = "divide pixels by 255, use sklearn.preprocessing.MinMaxScaler, or set likelihood='gaussian'"
        reason = f"likelihood='{likelihood}' expects values in [0, 1]"
        _refuse(X, place, lambda x: (x < 0) | (x * scale > 1), reason, advice)


def warn_about_empty_rows(X: np.ndarray) -> None:
    """Warn of rows (n, D) in which all values are missing: log p of no values is 0, so they look likely."""
    num_empty = np.count_nonzero(np.isnan(X).all(axis=1)) if np.issubdtype(X.dtype, np.floating) else 0
    if num_empty:
        have = "has" if num_empty == 1 else "have"
        warnings.warn(
            f"X: {num_empty:,} of {len(X):,} rows {have} no observed value, and 0 nats: as if very likely. Leave such "
            "rows out of averages and rankings.",
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
        count = _counted(constant.size, "such column")
        raise ValueError(
            f"X: {_column(column, columns)} is constant ({values}; {count}). Under a Gaussian likelihood its density "
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


def column_units(X: np.ndarray, *, is_shared: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns' means and standard deviations; see :func:`units_of`."""
    mean = X.mean(axis=0, dtype=np.float64)
    squares = np.sum([np.square(block - mean).sum(axis=0) for block in _blocks(X)], axis=0)
    return units_of(mean, squares / len(X), is_shared=is_shared)


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


def _blocks(X):
    num_rows = block_rows(X.shape[1])
    return (X[start : start + num_rows] for start in range(0, len(X), num_rows))


def _refuse(X, place, is_bad: Callable, reason, advice):
    """Raise an error for the first bad value, if there is one."""
    first, count, seen = None, 0, 0
    for block in _blocks(X):
        bad = is_bad(block)
        count += np.count_nonzero(bad)
        if count and first is None:
            row, column = np.unravel_index(np.argmax(bad), bad.shape)
            first = seen + row, column
        seen += len(block)
    if first is not None:
        name, row_numbers, columns = place
        raise ValueError(
            f"{name}: the value at row {row_numbers[first[0]]}, {_column(first[1], columns)} is {X[first].item()!r} "
            f"({_counted(count, 'such value')}, rows counted from 0): {reason}. To fix it: {advice}."
        )


def _column(number, names):
    return f"column {number}" if names is None else f"column {str(names[number])!r}"


def _counted(count, what):
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


@contextmanager
def explained(X, name: str = "X") -> Iterator[None]:
    """Add to scikit-learn's errors the argument's name, the position of the first bad value, and what to do."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        if np.ndim(_as_objects(X)) == 0 and not hasattr(X, "toarray"):
            raise WrongTypeError(f"{name}={shown(X)}: expected rows and columns. Give an array (n, D).") from None
        check_row_lengths(X, name)
        check_number_type(X, name)
        said = " ".join(str(error).split())
        said = said if said.startswith(f"{name} ") else f"{name}: {said}"
        advice = next((advice for words, advice in _ADVICE.items() if words in said), "")
        if "Flatten" in advice and getattr(X, "dtype", None) == np.uint16:
            advice += " For 16-bit grey levels: X.reshape(len(X), -1) / 65535."
        kind = WrongTypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{said} {advice}".strip()) from None


_ADVICE = {  # by words in scikit-learn's message
    "array with dim": "Flatten images and similar arrays first: X.reshape(len(X), -1).",
    "features as input": "Give the columns that it was fitted to.",
    "sample(s)": "Give at least one row.",
    "0 feature(s)": "Give at least one column.",
}


def check_row_lengths(X, name: str = "X") -> None:
    """Refuse a list of rows if one differs in length from the first; the message names it."""
    if not isinstance(X, list | tuple) or not all(map(np.iterable, X)):
        return
    lengths = [len(row) for row in X]
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            raise ValueError(
                f"{name}: row {row} has {length} values, but row 0 has {lengths[0]} (rows counted from 0). All rows "
                "need the same length; use NaN for missing values, which VAE.impute fills in."
            )


def check_number_type(X, name: str = "X") -> None:
    """Refuse a matrix with entries that are not numbers; the message names the first."""
    array = _as_objects(X)
    if array.dtype.kind not in "OUSc" or array.ndim != 2:
        return
    row = next((row for row, values in enumerate(array) if not _is_number(values)), None)
    if row is not None:
        column, value = next((column, value) for column, value in enumerate(array[row]) if not _is_number(value))
        place = f"{name}: the value at row {row}, {_column(column, _names_of(X))} is {shown(value)}"
        if np.iscomplexobj(value):
            raise ValueError(f"{place}. Complex data not supported: give np.c_[X.real, X.imag].")
        if hasattr(value, "isoformat") or isinstance(value, np.datetime64 | np.timedelta64):
            raise WrongTypeError(
                f"{place}, a date or time, not a number (rows counted from 0). Convert it to a number, such as days "
                "since the first, (when - when.min()) / np.timedelta64(1, 'D'), or leave the column out."
            )
        raise WrongTypeError(
            f"{place}, not a number (rows counted from 0; could not convert string to float: its argument must be a "
            "string of digits or a number). Encode categories first, for instance with "
            "sklearn.preprocessing.OneHotEncoder."
        )
    if array.dtype.kind in "US":
        raise ValueError(f"{name}: the value at row 0, column 0 is text, {shown(array[0, 0])}. Give X.astype(float).")


def _names_of(X):
    """Return the column names of a data frame; None if X has none."""
    names = getattr(X, "columns", None)
    return None if names is None or not all(isinstance(column, str) for column in names) else list(names)


def _is_number(value):
    """Whether this is a number, or a row of numbers: checking a million cells one by one would take seconds."""
    if np.iscomplexobj(value):
        return False
    try:
        np.asarray(value).astype(float)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _as_objects(X):
    """Return X as an array; an array of objects if its rows differ in length."""
    try:
        return np.asarray(X)
    except ValueError:
        return np.empty(len(X), object)
