"""Bad input is refused before any work is done, with the argument, the place, the value, and what to do."""

import difflib
import numbers
import operator
from collections.abc import Callable, Iterable

import numpy as np

from aevb.models import LIKELIHOODS

_BLOCK_BYTES = 16_000_000  # data are looked at in blocks, so that a check does not need the memory of a copy


def check_rows(
    X: np.ndarray, likelihood: str | None, *, scale: float = 1.0, name: str = "X", first_row: int = 0
) -> None:
    """Check the values of a data matrix for a likelihood.

    Args:
        X: (N, D), numbers.
        likelihood: A key of ``LIKELIHOODS``; None for one that takes any number.
        scale: What stored values are multiplied by before they are used.
        name: What the rows are part of, for the message.
        first_row: Number of the first of them there.

    Raises:
        ValueError: Naming the first bad row and column and its value.
    """
    place = name, first_row
    if np.issubdtype(X.dtype, np.floating):
        _refuse(X, place, lambda x: ~np.isfinite(x), "NaN and infinity are not data here", "drop or fill those rows")
        if X.dtype == np.float64:
            limit = np.finfo(np.float32).max
            reason = "the model computes in float32, whose range it exceeds"
            _refuse(X, place, lambda x: np.abs(x) > limit, reason, "rescale the column")
    if likelihood is not None and LIKELIHOODS[likelihood].unit_interval and (X.min() < 0 or X.max() * scale > 1):
        advice = "divide pixels by 255, use sklearn.preprocessing.MinMaxScaler, or set likelihood='gaussian'"
        reason = f"likelihood='{likelihood}' takes values in [0, 1]"
        _refuse(X, place, lambda x: (x < 0) | (x * scale > 1), reason, advice)


def check_columns_vary(low: np.ndarray, high: np.ndarray) -> None:
    """Refuse a column that is constant in float32: a Gaussian can make its likelihood there as large as it likes.

    Args:
        low: (D,), the columns' smallest values.
        high: (D,), their largest.
    """
    low, high = low.astype(np.float64), high.astype(np.float64)
    float32 = np.finfo(np.float32)
    constant = np.flatnonzero(high - low <= np.maximum(4 * float32.eps * np.maximum(abs(low), abs(high)), float32.tiny))
    if constant.size:
        column = constant[0]
        values, advice = f"every row has {low[column]}", ""
        if low[column] != high[column]:
            advice = ", or bring out what varies with sklearn.preprocessing.StandardScaler()"
            values = f"all rows lie between {low[column]} and {high[column]}, the same number in float32"
        are_grey_levels = low.min() >= 0 and 1 < high.max() <= 255
        hint = "If these are grey levels from 0 to 255, give X / 255 or X.astype('uint8'). " * bool(are_grey_levels)
        raise ValueError(
            f"X: column {column} is constant ({values}; {constant.size} such column(s)). Under a Gaussian likelihood "
            f"its density has no bound. {hint}Drop it with sklearn.feature_selection.VarianceThreshold(){advice}."
        )


def column_units(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns' means and standard deviations (1 for a constant column), in float32."""
    mean = X.mean(axis=0, dtype=np.float64)
    squares = np.sum([np.square(block - mean).sum(axis=0) for block in _blocks(X)], axis=0)
    return units_of(mean, squares / len(X))


def units_of(mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations (1 for a constant column), in float32."""
    return mean.astype(np.float32), np.sqrt(np.where(variance > 0, variance, 1.0)).astype(np.float32)


def block_rows(num_columns: int) -> int:
    """Return how many rows are looked at at a time."""
    return max(_BLOCK_BYTES // (8 * num_columns), 1)


def _blocks(X):
    num_rows = block_rows(X.shape[1])
    return (X[start : start + num_rows] for start in range(0, len(X), num_rows))


def _refuse(X, place, is_bad: Callable, reason, advice):
    """Raise for the first of the bad values, if there are any."""
    first, count, seen = None, 0, 0
    for block in _blocks(X):
        bad = is_bad(block)
        count += np.count_nonzero(bad)
        if count and first is None:
            row, column = np.unravel_index(np.argmax(bad), bad.shape)
            first = seen + row, column
        seen += len(block)
    if first is not None:
        name, first_row = place
        raise ValueError(
            f"{name}: the value at row {first_row + first[0]}, column {first[1]} is {X[first].item()!r} "
            f"({count} such value(s) in all): {reason}. What to do: {advice}."
        )


def check_number_type(X) -> None:
    """Refuse a matrix that has entries which are no numbers, naming the first."""
    array = np.asarray(X)
    if array.dtype.kind not in "OUS" or array.ndim != 2:
        return
    for row, values in enumerate(array):
        for column, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"X: the value at row {row}, column {column} is {value!r}, not a number "
                    "(could not convert string to float). Encode categories first, for instance with "
                    "sklearn.preprocessing.OneHotEncoder."
                ) from None


def check_parameter(
    name: str, value, *, choices: Iterable | None = None, kind=None, low=None, high=None, above=None
) -> None:
    """Check one constructor argument.

    Args:
        name: Name of the argument.
        value: What was given.
        choices: Allowed values.
        kind: ``int`` or ``float``.
        low: Smallest allowed number.
        high: Largest allowed number.
        above: A number that is just too small.

    Raises:
        ValueError: Saying what was given and what is allowed.
    """
    if choices is not None:
        choices = list(choices)
        if not (isinstance(value, str | None) and value in choices):
            names = [choice for choice in choices if isinstance(choice, str)]
            close = difflib.get_close_matches(str(value).lower(), names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            allowed = ", ".join(repr(choice) for choice in choices)
            raise ValueError(f"{name}={value!r} is not known.{hint} Choose one of {allowed}.")
        return
    number = numbers.Integral if kind is int else numbers.Real
    is_number = isinstance(value, number) and not isinstance(value, bool | np.bool_) and np.isfinite(float(value))
    rules = {"at least": (low, operator.ge), "at most": (high, operator.le), "more than": (above, operator.gt)}
    limits = [(words, limit, holds) for words, (limit, holds) in rules.items() if limit is not None]
    if not is_number or not all(holds(value, limit) for _, limit, holds in limits):
        wanted = "a whole number" if kind is int else "a number"
        allowed = " and ".join(f"{words} {limit}" for words, limit, _ in limits)
        raise ValueError(f"{name}={value!r} is not allowed. Give {wanted} of {allowed}.")
