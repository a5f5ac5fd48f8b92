"""A picture of columns for each value of y: data, and what the model draws."""

from pathlib import Path

import numpy as np

from aevb.data.label_data import LabelData, label_names
from aevb.fitted import FittedModel
from aevb.report.calibration import Panel, plot_panels
from aevb.report.label_rows import conditions, judged_rows, samples, which_rows

MAX_COLUMNS = 9  # that are shown
NUM_SAMPLES = 300


def shown_columns(model: FittedModel) -> list[tuple[int, str, list[str]]]:
    """Return the places of columns, their names, and the levels of those that hold labels, as far as they are shown."""
    model = model.of_data
    if not model.is_table:
        names = model.matrix.columns or [f"column {number}" for number in range(model.matrix.num_columns)]
        return [(place, str(name), []) for place, name in enumerate(names)][:MAX_COLUMNS]
    columns = enumerate(model.format.columns)
    return [(place, str(c.name), [str(level) for level in c.levels]) for place, c in columns][:MAX_COLUMNS]


def draw_columns(model: FittedModel, data: LabelData, path: Path, seed: int) -> Path:
    """Draw columns of data and samples for each of several values of y."""
    names, given = conditions(model, data)
    rows, drawn = judged_rows(model, data), samples(model, given, NUM_SAMPLES, seed)
    is_label = label_names(model) is not None
    panels = {}
    for place, column, levels in shown_columns(model):
        observed = _in_units(model, rows.values, place)
        parts = [
            (
                name,
                observed[(rows.given == y).all(axis=1)] if is_label else observed[:0],
                _in_units(model, drawn[number], place),
            )
            for number, (name, y) in enumerate(zip(names, given, strict=True))
        ]
        panels[column] = Panel(parts, levels)
    data_are = f"grey, upper bars: {which_rows(model, data)}; " if is_label else ""
    subtitle = f"{data_are}red, lower bars: samples; dot: median, thick: quartiles, thin: 90%; bars: shares of labels"
    return plot_panels(path, panels, subtitle)


def _in_units(model, rows, place):
    """Return a column of stored rows in the user's units; labels as their places."""
    values = np.asarray(rows, np.float64)[..., place]
    return model.of_data.format.columns[place].column.in_units(values) if model.of_data.is_table else values
