"""What the page of a regressor contains: p(z|x) and p(y|x, z), and rows to begin with."""

from typing import Any

import numpy as np

from aevb.data.label_data import LabelData
from aevb.explorer.active import evenly
from aevb.explorer.fields import table_fields
from aevb.explorer.given import name_of
from aevb.explorer.model import describe, model_arrays
from aevb.fitted import FittedModel

MAX_ROWS = 500


def prediction_contents(
    model: FittedModel, data: LabelData, name: str = "", most: int | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the facts and the arrays of a page.

    Args:
        model: A model of targets y given x.
        data: Its data.
        name: Of the run.
        most: Maximum number of rows that can be loaded; None for 500.
    """
    rows = data.train if data.test is None else data.test
    assert rows is not None
    numbers = evenly(len(rows.values), MAX_ROWS if most is None else most)
    targets, inputs = rows.values[numbers], rows.given[numbers]
    facts = {
        "title": data.title,
        "name": name,
        "model": describe(model),
        "inputs": table_fields(model.given, inputs),
        "targets": _named(table_fields(model.format, targets), model.format),
        "are_held_out": data.test is not None and data.train is not None,
    }
    arrays = {
        name: array for name, array in model_arrays(model).items() if not name.startswith("['parameters'][1]")
    }  # without the encoder, which reads y
    rows_of = {"inputs": inputs, "targets": targets}
    return facts, arrays | {name: np.asarray(array, np.float32) for name, array in rows_of.items()}


def _named(fields, format):
    return [field | {"name": name_of(format, place)} for place, field in enumerate(fields)]
