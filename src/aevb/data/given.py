"""What rows are conditioned on: labels, numbers or a table of covariates, as the stored numbers of their columns."""

import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from aevb.arrays import num_rows
from aevb.data.frames import TableFormat, is_frame, unknown_labels
from aevb.data.frames.format import NothingToLearnError
from aevb.data.frames.kinds import MAX_CODES
from aevb.data.frames.values_frame import ValuesFrame
from aevb.errors import shown
from aevb.fitted.model import given_source
from aevb.training import Source

COLUMN = "y"  # the name of a single column without one


class GivenData(NamedTuple):
    """What the rows of a data set are conditioned on."""

    format: TableFormat
    rows: np.ndarray  # (N, D'), stored numbers
    held_out: np.ndarray | None = None  # (n, D'), of rows that the user holds out

    def joined(self, source: Source, numbers: np.ndarray | None = None, *, held_out: bool = False) -> Source:
        """Return the rows of a source together with what they are conditioned on.

        Args:
            source: The rows.
            numbers: Their indices in the data; None for all.
            held_out: Whether they are the rows that the user holds out.
        """
        rows = self.held_out if held_out else self.rows
        if rows is None:
            raise ValueError("validation_data: a conditional model needs (X, y), what its rows are conditioned on too.")
        rows = rows if numbers is None else rows[numbers]
        check_lengths(num_rows(source.rows), len(rows))
        return given_source(source, self.format, rows)


def learn_given(y: Any, name: str = "y", kinds: Any = "auto") -> tuple[TableFormat, np.ndarray]:
    """Return the format of what rows are conditioned on, and its stored numbers (N, D').

    Args:
        y: (N,), labels or numbers; or a table of covariates, a frame or a matrix.
        name: Of the argument, for messages.
        kinds: Of the columns, see :meth:`aevb.data.frames.TableFormat.learn`. Whole numbers with at most 20 different
            values are labels.

    Example:
        >>> format, rows = learn_given(["cat", "dog", "cat", "cow"])
        >>> format.columns[0].kind, rows.ravel().tolist()
        ('categorical', [0.0, 2.0, 0.0, 1.0])
    """
    if np.ndim(y) == 0 and not is_frame(y) and not isinstance(y, Mapping | None):
        raise ValueError(f"{name}={shown(y)}: give one value for each row of X.")
    frame = as_frame(y, name)
    with naming(name):
        if isinstance(frame, ValuesFrame) and kinds == "auto":
            kinds = {key: "categorical" for key, values in frame.arrays.items() if _are_codes(values)}
        try:
            format = TableFormat.learn(frame, kinds)
        except NothingToLearnError as error:
            message = f"{name} cannot be conditioned on: {error.reasons}. Give another {name}, or none."
            raise ValueError(message) from error
        return format, format.encode(frame)


def encode_given(format: TableFormat, y: Any, length: int | None = None, name: str = "y") -> np.ndarray:
    """Return what rows are conditioned on as stored numbers, (n, D').

    Args:
        format: As it was learned.
        y: For each row, or one value for all rows; for several covariates a frame, or values by name.
        length: n; None for as many as are given.
        name: Of the argument, for messages.

    Raises:
        ValueError: A label was not there in training, or entries are missing that never were.
    """
    frame = as_frame(y, name)
    with naming(name):
        for column, labels in unknown_labels(format, frame).items():
            known = next(known.levels for known in format.columns if known.name == column)
            strange, learned = (", ".join(_shown_label(label) for label in some) for some in (labels[:5], known[:20]))
            raise ValueError(
                f"X: {strange} {'is' if len(labels) == 1 else 'are'} not among the labels that the model learned "
                f"({learned}{', ...' * (len(known) > 20)}). Give these, or fit a new model."
            )
        rows = format.encode(frame)
    if not format.encodes_missing and np.isnan(rows).any():
        raise ValueError(
            f"{name}: has missing entries, but there were none in the rows that the model was fitted to. Fill them in, "
            "or fit rows with missing entries too."
        )
    if length is None or len(rows) == length:
        return rows
    if len(rows) != 1:
        check_lengths(length, len(rows), name)
    return np.repeat(rows, length, axis=0)


def read_given_data(y: Any, validation_data: Any = None, sample_weight: Any = None) -> tuple[GivenData, Any]:
    """Return what the rows of a data set are conditioned on, and the rows X that the user holds out, if any.

    Args:
        y: For each row; see :func:`learn_given`.
        validation_data: None, or (X, y) of rows that are held out.
        sample_weight: (N,), weights of the rows, whose number is compared.
    """
    format, rows = learn_given(y)
    if sample_weight is not None:
        check_lengths(len(sample_weight), len(rows))
    if validation_data is None:
        return GivenData(format, rows), None
    if not isinstance(validation_data, tuple | list) or len(validation_data) != 2:
        raise ValueError("validation_data: a conditional model needs (X, y), both for the rows that are held out.")
    X, held_out = validation_data
    return GivenData(format, rows, encode_given(format, held_out)), X


def as_frame(y: Any, name: str = "y") -> Any:
    """Return labels, numbers or covariates as a frame; a single one is the column "y"."""
    if y is None:
        raise ValueError(f"{name}: this model is conditional. Give {name}, what the rows are conditioned on.")
    if is_frame(y):
        return y
    if isinstance(y, Mapping):
        return ValuesFrame(y)
    if hasattr(y, "to_frame"):
        return y.to_frame(COLUMN)
    array = np.asarray(y)
    if array.ndim < 2:
        return ValuesFrame({COLUMN: array})
    if array.ndim == 2 and array.dtype.kind in "fiub":
        return array
    if array.ndim == 2 and array.shape[1] == 1:
        return ValuesFrame({COLUMN: array[:, 0]})
    raise ValueError(
        f"{name} has shape {array.shape} and type {array.dtype}: give one value for each row, a matrix of numbers, or "
        "a data frame."
    )


def check_lengths(num_rows: int, num_given: int, name: str = "y") -> None:
    """Refuse what rows are conditioned on if it is not as long as the rows."""
    if num_rows != num_given:
        raise ValueError(
            f"{name} has {num_given:,} row{'s' * (num_given != 1)}, but X has {num_rows:,}. Give one for each row of X."
        )


def _shown_label(label):
    """Return a label as messages show it; whole numbers without decimals, whatever their type."""
    return shown(int(label) if isinstance(label, float) and label == round(label) else label, 40)


def _are_codes(values):
    """Whether these are a few whole numbers, but not two, which are binary."""
    return values.dtype.kind in "iu" and 2 < len(np.unique(values)) <= MAX_CODES


@contextmanager
def naming(name: str):
    """Let errors and warnings about a table, which speak of X, name this argument instead."""

    def renamed(text):
        return name + text[1:] if text.startswith("X") else text

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", ".* no observed entry")  # which a condition may be without
        try:
            yield
        except ValueError as error:
            error.args = (renamed(str(error)), *error.args[1:])
            raise
    for one in found:
        warnings.warn(renamed(str(one.message)), one.category, stacklevel=3)
