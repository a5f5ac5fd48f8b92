"""The data of a report on a model with labels, targets or covariates."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from aevb.data.binarization import kind_of
from aevb.data.class_labels import read_labels
from aevb.data.datasets import Dataset
from aevb.data.run_data import RunData
from aevb.fitted import FittedModel
from aevb.models import Datapoint

CLASSIFIER, REGRESSOR, CONDITIONAL = "classifier", "regressor", "conditional"
HELD_OUT, GIVEN, TRAINING = "held-out", "given", "training"  # rows that a model is judged by


@dataclass(frozen=True, eq=False)
class LabelData:
    """Rows as a model stores them, with what they are conditioned on.

    These are datapoints of (n, D) values and (n, D') given numbers: of a classifier the rows and the places of their
    labels, NaN if unknown; of a regressor the targets and the inputs; of a conditional model the rows and their y.
    """

    title: str
    split: str  # in words
    train: Datapoint | None  # None if they are not known
    test: Datapoint | None  # other rows; None if there are none. Without `train` it is not known which they are
    image_shape: tuple[int, ...] | None = None
    light_on_dark: bool = True

    @property
    def num_train(self) -> int:
        """The number of training rows that are known."""
        return 0 if self.train is None else len(self.train.values)

    def as_run_data(self, model: FittedModel) -> RunData:
        """Return the rows as the data of a page; those that were not used for training first, if there are any."""
        test = self.train if self.test is None else self.test
        train = self.train
        assert test is not None
        if self.test is None or train is None:
            train = Datapoint(test.values[:0], given=test.given[:0])
        kind = kind_of(test.values)
        columns = None if model.is_table else model.matrix.columns
        look = {"binarization": kind, "columns": columns, "light_on_dark": self.light_on_dark}
        dataset = Dataset(self.title, test.values, None, self.image_shape, self.title, **look)
        rows = train.values, None, train.values, test.values, None, None
        given = {"train_given": train.given, "test_given": test.given}
        return RunData(dataset, *rows, self.split, kind, self.num_train, **given)

    @property
    def look(self) -> dict[str, Any]:
        """How images are drawn."""
        return {"image_shape": self.image_shape, "cmap": "gray" if self.light_on_dark else "gray_r"}


def kind_of_labels(model: FittedModel) -> str | None:
    """Return what a model does with y: one of the names above, or None if it has none."""
    if model.given is None:
        return None
    if model.arguments.option("label_prior", None) is not None:
        return CLASSIFIER
    return CONDITIONAL if model.arguments.option("conditional_prior", None) is None else REGRESSOR


def stored_rows(estimator: Any, X: Any, y: Any, name: str = "y") -> Datapoint:
    """Return rows of an estimator with labels as its model stores them.

    Args:
        estimator: A fitted `VAE(conditional=True)`, `VAEClassifier` or `VAERegressor`.
        X: (n, D), as for its `fit`.
        y: What belongs to the rows, as for its `fit`; of a classifier None if no label is known.
        name: Name of y, for messages.

    Raises:
        ValueError: They do not match the model, or each other.
    """
    kind = kind_of_labels(estimator.model_)
    if kind == REGRESSOR:
        given = estimator._read_inputs(X)
        if y is None:
            raise ValueError(f"{name}: the report of a regressor needs the targets of the rows. Give them.")
        return Datapoint(estimator._read_targets(y, len(given)), given=given)
    if kind == CONDITIONAL:
        return estimator._check_rows_given(X, y)
    rows = estimator._check_new_data(X)
    if y is None:
        return Datapoint(rows, given=np.full((len(rows), 1), np.nan))
    return Datapoint(rows, given=read_labels(y, len(rows), estimator.classes_)[1][:, None])


def judged(model: FittedModel, data: LabelData, most: int) -> tuple[Datapoint, str]:
    """Return the rows by which predictions are judged, at most so many, and what they are.

    They have known labels or targets. ``"held-out"`` rows are not among the training rows; ``"given"`` ones may be, as
    the training rows are not known; if no other row has a label or target, they are ``"training"`` rows.
    """
    for rows, kind in ((data.test, GIVEN if data.train is None else HELD_OUT), (data.train, TRAINING)):
        if rows is None:
            continue
        numbers = np.flatnonzero(are_known(model, rows))
        if len(numbers):
            if len(numbers) > most:
                numbers = numbers[np.linspace(0, len(numbers) - 1, most).astype(int)]
            return Datapoint(rows.values[numbers], given=rows.given[numbers]), kind
    raise ValueError("y: no label or target is known, so that there is nothing to judge predictions by. Give some.")


def are_known(model: FittedModel, rows: Datapoint) -> np.ndarray:
    """Return which rows have known labels or targets, (n,)."""
    kind = kind_of_labels(model)
    if kind == CONDITIONAL:
        return np.ones(len(rows.values), bool)
    known = rows.given if kind == CLASSIFIER else rows.values
    return ~np.isnan(known).any(axis=1)


def are_among(rows: Datapoint, others: Datapoint) -> bool:
    """Whether all of these rows, with what they are conditioned on, are among others."""
    stored = [np.concatenate([some.values, some.given], axis=1).astype(np.float64) for some in (rows, others)]
    known = {row.tobytes() for row in stored[1]}
    return all(row.tobytes() in known for row in stored[0])


def label_names(model: FittedModel) -> list[str] | None:
    """Return the labels that rows are conditioned on, as text; None if y is something else."""
    columns = model.given.columns
    return [str(level) for level in columns[0].levels] if len(columns) == 1 and columns[0].levels else None
