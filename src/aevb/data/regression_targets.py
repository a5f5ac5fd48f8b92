"""The targets of a regression: numbers, one or several for each row, of which some may be unknown (NaN)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from aevb.data.class_labels import without_column_axis
from aevb.data.frames import TableFormat, is_frame
from aevb.data.frames.cells import DATE, DURATION, TEXT, WORDS, read_cells
from aevb.data.frames.containers import open_frame, series_of
from aevb.data.frames.kinds import facts_of, nothing_to_learn
from aevb.data.frames.likelihoods import DROP, requested_kinds
from aevb.data.frames.parts import take_rows
from aevb.data.frames.values_frame import ValuesFrame
from aevb.data.given import COLUMN, as_frame, check_lengths, naming

_AS_NUMBERS = "Convert it to numbers, such as days since the first."
NOT_NUMBERS = {  # what to do with such targets
    TEXT: "Use VAEClassifier for labels; convert numbers that are written as text: y.astype(float).",
    DATE: _AS_NUMBERS,
    DURATION: _AS_NUMBERS,
}


def learn_targets(y: Any, likelihood: Any, length: int) -> tuple[TableFormat, np.ndarray, bool]:
    """Return the format of targets, their stored numbers (N, T), and whether y has one dimension.

    Args:
        y: (N,) or (N, T), numbers, or a data frame; NaN for what is unknown.
        likelihood: Their kinds, see :meth:`aevb.data.frames.TableFormat.learn`.
        length: N.

    Raises:
        ValueError: They cannot be learned; the message says why, and what to do.

    Example:
        >>> targets, rows, is_one = learn_targets([1.0, 2.0, np.nan, 3.0], "gaussian", 4)
        >>> rows.shape, is_one
        ((4, 1), True)
    """
    if y is None:
        raise ValueError("VAERegressor requires y to be passed, but the target y is None. Give y for each row.")
    if not is_frame(y) and not hasattr(y, "to_frame") and not isinstance(y, Mapping):
        y = without_column_axis(np.asarray(y))
    frame = as_frame(y)
    with naming("y"):
        check_lengths(length, len(open_frame(frame)))
        _check_targets(frame, likelihood)
        targets = TableFormat.learn(frame, likelihood)
        rows = targets.encode(frame)
        is_known = ~np.isnan(rows).all(axis=1)
        if not is_known.all():  # rows without a target are not used: they have no say in the format
            targets = TableFormat.learn(_some_rows(frame, is_known), likelihood)
            rows = targets.encode(frame)
    return targets, rows, getattr(y, "ndim", 2) == 1


def read_targets(targets: TableFormat, y: Any, length: int) -> np.ndarray:
    """Return targets of new rows as stored numbers, (n, T).

    Args:
        targets: Their format, as it was learned.
        y: As for `fit`.
        length: n.
    """
    if y is None:
        raise ValueError("y is None. Give the targets of the rows, NaN where they are unknown.")
    frame, num = as_frame(y), len(targets.columns)
    names = list(frame.columns) if hasattr(frame, "columns") else list(range(np.shape(frame)[1]))
    if len(names) != num:
        raise ValueError(f"y has {len(names)} targets, but the model learned {num}. Give {num} for each row.")
    with naming("y"):
        rows = targets.encode(frame)
    check_lengths(length, len(rows))
    return rows


def _check_targets(frame, likelihood):
    """Refuse targets that are not numbers, or of which there is nothing to learn."""
    series = series_of(open_frame(frame))
    for name, kind in requested_kinds(likelihood, list(series)).items():
        cells = read_cells(series[name], name)
        facts, which = facts_of(cells), "y" if name == COLUMN and len(series) == 1 else f"y: the target {name!r}"
        nothing = "left out, as asked for" if kind == DROP else nothing_to_learn(facts)
        if nothing is not None:
            raise ValueError(f"{which} is {nothing}. Give targets that differ between rows.")
        if cells.group in NOT_NUMBERS:
            raise ValueError(
                f"{which} holds {WORDS[cells.group]}, but a regressor predicts numbers. {NOT_NUMBERS[cells.group]}"
            )


def _some_rows(frame, is_kept):
    """Return some rows of a frame of targets."""
    if isinstance(frame, ValuesFrame):
        return ValuesFrame({name: values[is_kept] for name, values in frame.arrays.items()})
    return frame[is_kept] if isinstance(frame, np.ndarray) else take_rows(frame, np.flatnonzero(is_kept))
