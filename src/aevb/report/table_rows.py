"""The real rows of a table beside synthetic ones, as numbers that pictures and measures use."""

from typing import NamedTuple

import numpy as np

from aevb.data.frames import ColumnFormat
from aevb.data.frames.column_format import TIMES
from aevb.data.frames.containers import times
from aevb.data.frames.stored import LABELS
from aevb.data.run_data import RunData
from aevb.fitted import FittedModel, coding
from aevb.report.some_rows import some

MAX_ROWS = 5000


class RealAndSynthetic(NamedTuple):
    """Real and synthetic rows: numbers and codes of labels, NaN where missing."""

    real: np.ndarray  # (n, D)
    synthetic: np.ndarray  # (n, D)
    are_labels: np.ndarray  # (D,)


def real_and_synthetic(model: FittedModel, run_data: RunData, seed: int) -> RealAndSynthetic:
    """Return real rows, training and held-out ones, and as many draws from the model; at least 1,000 draws."""
    stored = some(np.concatenate([run_data.train, run_data.test]), MAX_ROWS)
    drawn = coding.sample(model, max(len(stored), 1000), random_state=seed)
    return RealAndSynthetic(in_units(model, stored), in_units(model, drawn), are_labels(model))


def are_labels(model: FittedModel) -> np.ndarray:
    """Return which columns hold labels, (D,)."""
    return np.array([is_label(column) for column in model.format.columns])


def is_label(column: ColumnFormat) -> bool:
    """Whether a column holds labels."""
    return column.column.family in LABELS


def in_units(model: FittedModel, stored: np.ndarray) -> np.ndarray:
    """Return stored rows in the units of the data, as `sample` returns them, (n, D): codes of labels, dates in days.

    If the model says which entries are missing, these are NaN, and the columns that say so are left out.
    """
    columns = zip(model.format.columns, model.format.with_holes(stored).T, strict=False)
    return np.stack([_numbers(column, numbers) for column, numbers in columns], axis=1)


def _numbers(column, stored):
    if is_label(column):
        return np.where(np.isnan(stored), np.nan, np.clip(np.rint(stored), 0, len(column.levels) - 1))
    values, missing = column.decode(stored)
    if is_time(column):
        ticks = times(column.storage, values, missing)
        # Matplotlib's dates, and durations, are in days.
        values = ticks.astype(f"{ticks.dtype.kind}8[us]").astype(np.int64) / 86_400e6
    return np.where(missing, np.nan, values)


def is_time(column: ColumnFormat) -> bool:
    """Whether a column holds dates or durations."""
    return column.storage.group in TIMES
