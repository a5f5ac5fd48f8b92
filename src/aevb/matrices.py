"""A matrix of numbers: read what a user gives as one, and refuse what is not, naming the place and what to do."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array

from aevb.errors import WrongTypeError, shown

_BLOCK_BYTES = 16_000_000  # data are checked in blocks, so that a check does not need the memory of a copy
_FORM: dict[str, Any] = {"dtype": "numeric", "ensure_all_finite": False}


def read_array(X: Any, name: str, validate: Callable[..., Any] = check_array) -> np.ndarray:
    """Return X as a matrix of numbers, with NaN where it is masked.

    Args:
        X: What the user gave.
        name: Name of the argument, for messages.
        validate: One of scikit-learn's checks of a matrix's shape and type.

    Raises:
        ValueError: It is no matrix of numbers.
    """
    with explained(X, name):
        matrix = validate(X.astype(float).filled(np.nan) if np.ma.is_masked(X) else X, **_FORM)
        dtype = number_type(matrix.dtype)
        if dtype is None:
            raise ValueError(
                f"{name} contains {matrix.dtype}, not numbers. Convert dates to days: "
                "(X - X.min()) / np.timedelta64(1, 'D')."
            )
        return matrix.astype(dtype, copy=False)


def number_type(dtype) -> np.dtype | None:
    """Return the type in which numbers of this type are stored; None if they are not numbers."""
    if dtype in (np.bool_, np.uint8, np.float32, np.float64):
        return np.dtype(dtype)
    if dtype.kind not in "iuf":
        return None
    return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)  # JAX would truncate 64-bit integers


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
    "Sparse data": "Counts of words may stay sparse: set likelihood='multinomial'.",
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
        place = f"{name}: the value at row {row}, {column_label(column, _names_of(X))} is {shown(value)}"
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


# ---- values ----------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where the rows of a matrix come from, for messages."""

    name: str = "X"  # of the data that they belong to
    row_numbers: Sequence[int] | np.ndarray | None = None  # (N,), their indices in these data; None: 0, 1, ...
    columns: Sequence[str] | None = None  # (D,), the column names, if there are any


def check_finite(X: np.ndarray, place: Place) -> None:
    """Refuse NaN, infinity, and numbers beyond the range of float32."""
    if not np.issubdtype(X.dtype, np.floating):
        return
    reason, advice = "infinity is not allowed here", "correct those values, or drop those rows"
    if X.size and np.isnan(X.min()):
        reason, advice = "NaN and infinity are not allowed here", "drop or fill those rows"
    refuse(X, place, lambda x: ~np.isfinite(x), reason, advice)
    if X.dtype == np.float64:
        limit = np.finfo(np.float32).max
        reason = "the model computes in float32, whose range it exceeds"
        refuse(X, place, lambda x: np.abs(x) > limit, reason, "rescale the column")


def refuse(X: np.ndarray, place: Place, is_bad: Callable, reason: str, advice: str) -> None:
    """Raise an error for the first bad value, if there is one.

    Args:
        X: (N, D).
        place: Where its rows come from.
        is_bad: Function from a block of rows to an array of bool.
        reason: Why such values are refused.
        advice: What to do.
    """
    first, count, seen = None, 0, 0
    for block in row_blocks(X):
        bad = is_bad(block)
        count += int(np.count_nonzero(bad))
        if count and first is None:
            row, column = np.unravel_index(np.argmax(bad), bad.shape)
            first = seen + int(row), int(column)
        seen += len(block)
    if first is not None:
        row = first[0] if place.row_numbers is None else place.row_numbers[first[0]]
        raise ValueError(
            f"{place.name}: the value at row {row}, {column_label(first[1], place.columns)} is {X[first].item()!r} "
            f"({counted(count, 'such value')}, rows counted from 0): {reason}. To fix it: {advice}."
        )


def row_blocks(X: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the rows of a matrix in blocks."""
    num_rows = block_rows(X.shape[1])
    return (X[start : start + num_rows] for start in range(0, len(X), num_rows))


def block_rows(num_columns: int) -> int:
    """Return the number of rows in a block."""
    return max(_BLOCK_BYTES // (8 * num_columns), 1)


def column_label(number: int, names: Sequence[str] | None) -> str:
    """Return how a message calls a column: by its name, or by its number."""
    return f"column {number}" if names is None else f"column {str(names[number])!r}"


def counted(count: int, what: str) -> str:
    """Return a count with its noun, such as ``"2 such values"``."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
