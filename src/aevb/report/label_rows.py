"""Which rows the pictures of a model with labels show, and which values of y."""

import numpy as np

from aevb.data.label_data import (
    CLASSIFIER,
    GIVEN,
    HELD_OUT,
    TRAINING,
    LabelData,
    judged,
    kind_of_labels,
    label_names,
)
from aevb.fitted import FittedModel, coding, labels
from aevb.models import Datapoint
from aevb.report.label_measures import MAX_ROWS

MAX_CONDITIONS = 10  # that are shown
MAX_LETTERS = 20  # of one with several columns


def judged_rows(model: FittedModel, data: LabelData, most: int = MAX_ROWS) -> Datapoint:
    """Return the rows that predictions are judged by, at most so many."""
    return judged(model, data, most)[0]


def which_rows(model: FittedModel, data: LabelData, most: int = MAX_ROWS) -> str:
    """Return in words which rows predictions are judged by."""
    rows, kind = judged(model, data, most)
    words = {
        HELD_OUT: "rows that were not used for training",
        GIVEN: "given rows",
        TRAINING: "training rows, as there are no others",
    }
    return f"{len(rows.values):,} {words[kind]}"


def conditions(model: FittedModel, data: LabelData) -> tuple[list[str], np.ndarray]:
    """Return names of values of y, and their stored numbers (C, D'): labels, or some that occur in the data."""
    names, given = label_names(model), judged_rows(model, data).given
    if names is not None:
        return names[:MAX_CONDITIONS], np.arange(min(len(names), MAX_CONDITIONS), dtype=float)[:, None]
    if given.shape[1] == 1:
        found = np.quantile(given[~np.isnan(given)], [0.1, 0.3, 0.5, 0.7, 0.9])[:, None]
        column = model.given.columns[0].column
        return [f"{value:.3g}" for value in column.in_units(found[:, 0])], found
    found = given[np.linspace(0, len(given) - 1, min(len(given), 5)).astype(int)]
    return [_described(model, row) for row in found], found


def _described(model, given):
    """Return what a row is conditioned on as text: the values of the first columns."""
    texts = []
    for column, value in zip(model.given.columns, given, strict=True):
        if np.isnan(value):
            texts.append("missing")
        else:
            texts.append(str(column.levels[int(value)]) if column.levels else f"{column.column.in_units(value):.3g}")
    text = ", ".join(texts)
    return text if len(text) <= MAX_LETTERS else f"{text[: MAX_LETTERS - 1]}…"


def samples(model: FittedModel, given: np.ndarray, num: int, seed: int) -> np.ndarray:
    """Return rows of the model in the units of the data for each condition, (C, num, D)."""
    repeated = np.repeat(given, num, axis=0)
    options = {"mean": False, "random_state": seed}
    if kind_of_labels(model) == CLASSIFIER:
        rows = labels.sample_of_labels(model, len(repeated), repeated[:, 0].astype(int), **options)
    else:
        rows = coding.sample(model, len(repeated), given=repeated, **options)
    return np.asarray(rows).reshape(len(given), num, -1)
