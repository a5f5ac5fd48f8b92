"""Predictions that ignore the inputs, beside which those of a model are shown."""

from typing import Any

import numpy as np

from aevb.data.label_data import LabelData, are_known
from aevb.fitted import FittedModel, prediction
from aevb.models import Datapoint

WORDS = {  # for each number of a report: the prediction that ignores the inputs
    "accuracy": "predicting the most frequent label",
    "log_loss": "predicting the label frequencies",
    "root_mean_squared_error": "predicting the mean",
}


def reference_rows(model: FittedModel, data: LabelData, rows: Datapoint) -> tuple[Datapoint, str]:
    """Return the rows from which such predictions are learned, and their name.

    They are the training rows; without these, or without what belongs to them, the rows that are predicted.
    """
    if data.train is None or not are_known(model, data.train).any():
        return rows, "these rows"
    return data.train, "the training rows"


def label_shares(places: np.ndarray, num_labels: int) -> np.ndarray:
    """Return the share of each label, (K,); one that does not occur counts as half a row, so that it is possible.

    Args:
        places: (n,), places of labels, NaN if unknown.
        num_labels: K.

    Example:
        >>> label_shares(np.array([0, 1, 1, np.nan, 1]), 2).tolist()
        [0.25, 0.75]
    """
    counts = np.bincount(places[~np.isnan(places)].astype(int), minlength=num_labels)
    counts = np.maximum(counts, 0.5)
    return counts / counts.sum()


def without_inputs_labels(places: np.ndarray, shares: np.ndarray) -> dict[str, float]:
    """Return accuracy and log loss of predictions that ignore the inputs.

    Args:
        places: (n,), places of the labels to predict.
        shares: (K,), see `label_shares`.
    """
    losses = -np.log(shares[places])
    return {"accuracy": float(np.mean(places == shares.argmax())), "log_loss": float(losses.mean())}


def errors_of_means(model: FittedModel, rows: Datapoint, reference: Datapoint) -> np.ndarray:
    """Return the root mean squared error of the mean of the reference rows, for each target, (T,)."""
    values, known = (prediction.in_units(model, np.asarray(some.values)) for some in (rows, reference))
    return np.sqrt(np.mean((values - np.nanmean(known, axis=0)) ** 2, axis=0))


def baseline_words(metrics: dict[str, Any], name: str, number: str) -> str:
    """Return in words what a prediction without inputs reaches; nothing if there is none for this number.

    Args:
        metrics: See :func:`aevb.report.label_measures.measure_labels`.
        name: Name of the number.
        number: Format of the number, such as ``".1%"``.
    """
    simple = metrics.get("without_inputs", {})
    return f"{WORDS[name]} of {simple['of']}: {simple[name]:{number}}" if name in simple else ""
