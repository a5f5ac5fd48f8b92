"""The pictures in the report of a table."""

from typing import NamedTuple

import numpy as np

from aevb.data.frames.texts import MISSING
from aevb.data.run_data import RunData
from aevb.fitted import FittedModel, coding
from aevb.report.association import correlation_ratio
from aevb.report.association_plot import association_plot
from aevb.report.marginals import marginals
from aevb.report.missingness import missingness
from aevb.report.nearest_plot import nearest_plot
from aevb.report.picture import Picture, words
from aevb.report.plots import shown_axes
from aevb.report.some_rows import some
from aevb.report.table_measures import distances_to_training, matrices
from aevb.report.table_rows import is_label, real_and_synthetic

MAX_COLOURS = 10  # labels that can be told apart by colour
MIN_TOLD = 0.3  # correlation ratio from which colours show something


def _is_table(model, run_data):
    return model.is_table


def _has_missing(model, run_data):
    return model.is_table and any(np.isnan(rows).any() for rows in (run_data.train, run_data.test))


def _has_training_rows(model, run_data):
    return model.is_table and len(run_data.train) > 0


def _has_pairs(model, run_data):
    return model.is_table and len(model.format.columns) > 1


def _names(model):
    return [column.name for column in model.format.columns]


def _draw_associations(model, run_data, path, seed):
    return association_plot(*matrices(real_and_synthetic(model, run_data, seed)), _names(model), path)


def _draw_missing(model, run_data, path, seed):
    rows, names = {"training rows": run_data.train, "held-out rows": run_data.test}, _names(model)
    return missingness(
        {name: np.isnan(each[:, : len(names)]).mean(axis=0) for name, each in rows.items() if len(each)}, names, path
    )


def _draw_nearest(model, run_data, path, seed):
    return nearest_plot(**distances_to_training(model, run_data, seed), path=path)


class TellingColumn(NamedTuple):
    """A column of labels by which codes are coloured."""

    name: str
    place: int
    levels: tuple

    def labels(self, rows: np.ndarray) -> np.ndarray:
        """Return the labels of stored rows, (n,)."""
        codes = rows[:, self.place]
        names = np.array([*(str(level)[:20] for level in self.levels), MISSING])
        return names[np.where(np.isnan(codes), len(self.levels), codes).astype(int)]


def telling_column(model: FittedModel, run_data: RunData) -> TellingColumn | None:
    """Return the column with at most ten labels that a picture of codes tells most about; None if there is none.

    It is the one with the largest correlation ratio of a latent variable in the picture between its labels.
    """
    if not model.is_table:
        return None
    rows = some(np.concatenate([run_data.train, run_data.test]), 1000)
    rows = rows[~model.with_holes(rows)]
    found = [
        TellingColumn(column.name, place, column.levels)
        for place, column in enumerate(model.format.columns)
        if is_label(column) and len(column.levels) <= MAX_COLOURS and len(np.unique(rows[:, place])) > 1
    ]
    codes = shown_axes(coding.posterior_means(model, rows))[1].T if found else ()
    told = {column: _told(codes, rows[:, column.place]) for column in found}
    best = max(told, key=told.__getitem__, default=None)
    return None if best is None or told[best] < MIN_TOLD else best


def _told(codes, labels):
    seen = ~np.isnan(labels)
    if len(np.unique(labels[seen])) < 2:
        return 0.0
    return max(correlation_ratio(code[seen], labels[seen]) for code in codes)


TABLE_PICTURES: dict[str, Picture] = {
    "marginals": Picture(
        "Columns: real and synthetic",
        words(
            "Each column by itself. Where the model is right, the red outlines follow the grey bars. Numbers beyond "
            "the ends of a histogram count in its first or last bin."
        ),
        _is_table,
        lambda model, run_data, path, seed: marginals(
            model.format.columns, real_and_synthetic(model, run_data, seed), path
        ),
    ),
    "associations": Picture(
        "Associations between columns",
        words(
            "Rank correlation of two columns of numbers, Cramér's V of two columns of labels, and the correlation "
            "ratio of numbers between labels (the last two have no sign). A model that has learned how columns depend "
            "on each other shows the same pattern on both sides."
        ),
        _has_pairs,
        _draw_associations,
    ),
    "missing": Picture(
        "Missing entries",
        words(
            "The model is learned from the observed entries; missing ones are integrated out. That is right if an "
            "entry is not missing because of its own value."
        ),
        _has_missing,
        _draw_missing,
    ),
    "nearest_rows": Picture(
        "Does it repeat its training rows?",
        words(
            "Synthetic rows that are much closer to the training rows than held-out rows are would be copies of them, "
            "which matters if the data are private."
        ),
        _has_training_rows,
        _draw_nearest,
    ),
}
