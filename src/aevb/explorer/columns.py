"""What a page contains of a table besides the networks: features, families and units of its columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aevb.fitted import FittedModel
from aevb.models.column import Column
from aevb.models.column_families import blocks_of
from aevb.models.table import feature_layout

FACTS = ("family", "loc", "scale", "low", "high", "num_levels", "edges", "scores", "steps")


def describe_columns(model: FittedModel) -> dict[str, Any]:
    """Return what a page needs to run the encoder and the decoder of a table.

    Returns:
        ``"columns"``, one entry per column of x in its order; ``"features"``, for each kind of feature its columns and
        levels; ``"has_missing"``, whether the encoder also sees which entries are observed.
    """
    columns, shared = model.format.model_columns, model.point_generative.decoder.shared
    layout = {kind: [list(pair) for pair in pairs] for kind, pairs in feature_layout(columns).items()}
    described = column_facts(columns, shared)
    return {"columns": described, "features": layout, "has_missing": model.format.encodes_missing}


def column_facts(columns: Sequence[Column], all_shared: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a page needs of each column, in their order.

    Args:
        columns: The columns.
        all_shared: The decoder's weights that do not depend on z, by the name of their block; empty if there is none.
    """
    described: list[Any] = [None] * len(columns)
    start = 0
    for block in blocks_of(tuple(columns)):
        shared = {name: np.asarray(raw) for name, raw in all_shared.get(block.name, {}).items()}
        for number, (column, place) in enumerate(zip(block.columns, block.places, strict=True)):
            facts = column.describe() | {"scores": column.scores if column.kind.has_cells else []}
            facts["steps"] = column.single_values if column.kind.has_cells else []
            described[place] = {
                **{name: facts[name] for name in FACTS},
                **_parameters(block, number, start, shared),
            }
        start += block.num_outputs
    return described


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
