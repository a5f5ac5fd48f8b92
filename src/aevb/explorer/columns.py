"""What a page contains of a table besides the networks: features, families and units of its columns."""

from typing import Any

import numpy as np

from aevb.fitted import FittedModel
from aevb.models.column_families import Block, blocks_of
from aevb.models.table import feature_layout

FACTS = ("family", "loc", "scale", "low", "high", "num_levels", "edges", "scores", "steps")


def describe_columns(model: FittedModel) -> dict[str, Any]:
    """Return what a page needs to run the encoder and the decoder of a table.

    Returns:
        ``"columns"``, one entry per column of x in its order; ``"features"``, for each kind of feature its columns and
        levels; ``"has_missing"``, whether the encoder also sees which entries are observed.
    """
    columns = model.format.model_columns
    described: list[Any] = [None] * len(columns)
    start = 0
    for block in blocks_of(columns):
        shared = {name: np.asarray(raw) for name, raw in _shared(model, block).items()}
        for number, (column, place) in enumerate(zip(block.columns, block.places, strict=True)):
            facts = column.describe() | {"scores": column.scores if column.kind.has_cells else []}
            facts["steps"] = column.single_values if column.kind.has_cells else []
            described[place] = {
                **{name: facts[name] for name in FACTS},
                **_parameters(block, number, start, shared),
            }
        start += block.num_outputs
    layout = {kind: [list(pair) for pair in pairs] for kind, pairs in feature_layout(columns).items()}
    return {"columns": described, "features": layout, "has_missing": model.format.encodes_missing}


def _shared(model, block: Block):
    return model.point_generative.decoder.shared.get(block.name, {})


def _parameters(block, number, start, shared):
    """Return where the real numbers behind a column's parameters are, and what is added to them.

    ``"outputs"`` names the first of the network's outputs for a parameter, and the shift of each of them; ``"shared"``
    holds those that do not depend on z, shifted.
    """
    count, shifts, outputs = len(block.columns), block.shifts, {}
    for name, parameter in block.family.parameters.items():
        size = parameter.size(count) // count
        shift = np.reshape(shifts[name], (count, size))[number]
        outputs[name] = {"first": start + number * size, "shift": [float(value) for value in shift]}
        start += parameter.size(count)
    constants = {name: np.ravel((raw + shifts[name])[number]) for name, raw in shared.items()}
    return {"outputs": outputs, "shared": {name: [float(v) for v in values] for name, values in constants.items()}}
