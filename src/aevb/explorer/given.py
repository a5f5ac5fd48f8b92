"""What a page contains of y, which the rows of a model are conditioned on: the columns that can be set."""

from typing import Any

import numpy as np

from aevb.data.label_data import REGRESSOR, kind_of_labels
from aevb.explorer.columns import column_facts
from aevb.fitted import FittedModel, labels
from aevb.models import Datapoint
from aevb.models.table import feature_layout


def why_not(model: FittedModel) -> str | None:
    """Return why the page cannot condition this model on y; None if it can, or if there is no y."""
    if model.given is not None and model.given.encodes_missing and not is_regressor(model):
        return "y has missing entries, which the page cannot set"
    return None


def is_regressor(model: FittedModel) -> bool:
    """Whether this is a model of targets y given x."""
    return kind_of_labels(model) == REGRESSOR


def describe_given(model: FittedModel) -> dict[str, Any] | None:
    """Return what a page needs to condition the networks on y; None if the model is not conditional.

    Returns:
        ``"columns"``, one entry per column of y, with the names of its levels, if it has any; ``"features"``, for each
        kind of feature its columns and levels, as of tables; ``"is_classifier"``, whether the encoder gives q(y|x).
    """
    if model.given is None:
        return None
    all_facts = column_facts(model.given.model_columns, {})
    columns = [
        {
            "name": name_of(model.given, place),
            "levels": [str(level) for level in column.levels] or (["no", "yes"] if _is_binary(column) else None),
            **facts,
        }
        for place, (column, facts) in enumerate(zip(model.given.columns, all_facts, strict=True))
    ]
    layout = feature_layout(model.given.model_columns)
    return {
        "columns": columns,
        "features": {kind: [list(pair) for pair in pairs] for kind, pairs in layout.items()},
        "has_missing": model.given.encodes_missing,
        "is_classifier": is_classifier(model),
    }


def name_of(format: Any, place: int) -> str:
    """Return the name of a column of y; those of an array have none."""
    if format.container != "numpy":
        return str(format.columns[place].name)
    return "y" if len(format.columns) == 1 else f"y{place + 1}"


def _is_binary(column):
    kind = column.column.kind
    return not (kind.is_standardized or kind.is_count or kind.has_cells)


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
