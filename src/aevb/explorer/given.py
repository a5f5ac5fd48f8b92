"""What a page contains of y, which the rows of a model are conditioned on: the columns that can be set."""

from typing import Any

import numpy as np

from aevb.fitted import FittedModel, labels
from aevb.models import Datapoint
from aevb.models.table import feature_layout

PLAIN = ("numbers", "counts", "binary", "categories", "orders")  # features that page/given.js computes of y
FACTS = ("family", "loc", "scale", "low", "high", "num_levels")


def why_not(model: FittedModel) -> str | None:
    """Return why the page cannot condition this model on y; None if it can, or if there is no y."""
    if model.given is None:
        return None
    if model.arguments.option("conditional_prior", None) is not None:
        return (
            "this model predicts targets, for which there is no interactive page. Its report shows predictions and "
            "whether their intervals can be believed; predict_interval(X), or aevb predict RUN new.csv, gives those of "
            "new rows, and sample(X, 100) draws from p(y|x)"
        )
    if model.given.encodes_missing:
        return "y has missing entries, which the page cannot set"
    layout = feature_layout(model.given.model_columns)
    if any(pairs for kind, pairs in layout.items() if kind not in PLAIN):
        return "y has a column of a kind that the page cannot set"
    return None


def describe_given(model: FittedModel) -> dict[str, Any] | None:
    """Return what a page needs to condition the networks on y; None if the model is not conditional.

    Returns:
        ``"columns"``, one entry per column of y, with the names of its levels, if it has any; ``"features"``, for each
        kind of feature its columns and levels, as of tables; ``"is_classifier"``, whether the encoder gives q(y|x).
    """
    if model.given is None:
        return None
    columns = [
        {
            "name": str(column.name),
            "levels": [str(level) for level in column.levels] or (["no", "yes"] if _is_binary(column) else None),
            **{name: column.column.describe()[name] for name in FACTS},
        }
        for column in model.given.columns
    ]
    layout = feature_layout(model.given.model_columns)
    return {
        "columns": columns,
        "features": {kind: [list(pair) for pair in layout[kind]] for kind in PLAIN},
        "has_missing": False,
        "is_classifier": is_classifier(model),
    }


def _is_binary(column):
    return not (column.column.kind.is_standardized or column.column.kind.is_count)


def is_classifier(model: FittedModel) -> bool:
    """Whether y is a label with a classifier q(y|x)."""
    return model.arguments.option("label_prior", None) is not None


def rows_given(model: FittedModel, rows: np.ndarray, given: np.ndarray | None, numbers: np.ndarray) -> Any:
    """Return some rows with what they are conditioned on, if anything; unknown labels are the most probable ones.

    Args:
        model: The model.
        rows: (N, D).
        given: (N, D'), stored numbers; None if the rows are not conditioned on anything.
        numbers: Which rows.
    """
    rows = rows[numbers]
    if given is None:
        return rows
    given = np.array(given[numbers], np.float64)
    if len(unknown := np.flatnonzero(np.isnan(given).any(axis=1))):
        given[unknown, 0] = labels.label_probabilities(model, rows[unknown]).argmax(axis=1)
    return Datapoint(rows, given=given)


def colours(model: FittedModel, given: np.ndarray) -> np.ndarray | None:
    """Return what the dots of a page are coloured by, (n,): a label or a quantity; None if y has several columns."""
    if len(model.given.columns) != 1:
        return None
    column = model.given.columns[0]
    if column.levels:
        return np.array([str(column.levels[int(place)]) for place in given[:, 0]])
    return column.column.in_units(given[:, 0])
