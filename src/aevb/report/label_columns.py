"""A picture of columns for each value of y: data, and what the model draws."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from aevb.data.frames.cells import DATE
from aevb.data.label_data import LabelData, label_names
from aevb.fitted import FittedModel
from aevb.report.calibration import Panel, plot_panels
from aevb.report.label_rows import conditions, judged_rows, samples, which_rows
from aevb.report.table_rows import in_units, is_time

MAX_COLUMNS = 9  # that are shown
NUM_SAMPLES = 300


class ShownColumn(NamedTuple):
    """A column of the data that is drawn."""

    name: str
    levels: list[str]  # empty for numbers
    is_date: bool


def shown_columns(model: FittedModel) -> list[ShownColumn]:
    """Return the first columns, as many as are shown."""
    model = model.of_data
    if not model.is_table:
        names = model.matrix.columns or [f"column {number}" for number in range(model.matrix.num_columns)]
        return [ShownColumn(str(name), [], False) for name in names][:MAX_COLUMNS]
    return [_shown(column) for column in model.format.columns[:MAX_COLUMNS]]


def _shown(column):
    is_date = column.storage.group == DATE
    unit = ", days" if is_time(column) and not is_date else ""  # of durations
    return ShownColumn(f"{column.name}{unit}", [str(level) for level in column.levels], is_date)


def draw_columns(model: FittedModel, data: LabelData, path: Path, seed: int) -> Path:
    """Draw columns of data and samples for each of several values of y."""
    names, given = conditions(model, data)
    rows, is_label = judged_rows(model, data), label_names(model) is not None
    observed = _in_units(model, rows.values)
    drawn = [_in_units(model, part) for part in samples(model, given, NUM_SAMPLES, seed)]
    observed = [observed[(rows.given == y).all(axis=1)] if is_label else observed[:0] for y in given]
    panels = {}
    for place, column in enumerate(shown_columns(model)):
        parts = [
            (name, x[:, place], x_drawn[:, place]) for name, x, x_drawn in zip(names, observed, drawn, strict=True)
        ]
        panels[column.name] = Panel(parts, column.levels, column.is_date)
    data_are = f"grey, upper bars: {which_rows(model, data)}; " if is_label else ""
    subtitle = f"{data_are}red, lower bars: samples; dot: median, thick: quartiles, thin: 90%; bars: shares of labels"
    return plot_panels(path, panels, subtitle)


def _in_units(model, rows):
    """Return stored rows (n, D) in the user's units; labels as their places, dates in days."""
    rows = np.asarray(rows, np.float64)
    return in_units(model.of_data, rows) if model.of_data.is_table else rows
