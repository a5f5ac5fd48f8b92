"""What users of exported files have to know about their numbers, as JSON."""

import json
from pathlib import Path
from typing import Any

from aevb.export.functions import exported_functions
from aevb.files import written_whole
from aevb.fitted import FittedModel

STORED = {  # what stands for an entry x of a table
    "gaussian": "(x - loc) / scale",
    "student-t": "(x - loc) / scale",
    "lognormal": "(log(x) - loc) / scale",
    "bounded": "(logit((x - low) / (high - low)) - loc) / scale",
    "quantile-gaussian": "x, interpolated from edges to scores; (x - edge) / scale further beyond the first or last",
    "poisson": "x",
    "negative-binomial": "x",
    "bernoulli": "the place of x among the labels: 0 or 1",
    "categorical": "the place of x among the labels: 0, 1, ...",
    "ordinal": "the place of x among the labels: 0, 1, ...",
    "free-ordinal": "the place of x among the labels: 0, 1, ...",
    "histogram": "x, interpolated from edges to 0, 1, ...; (x - edge) / scale further beyond the first or last",
}


def write_facts(model: FittedModel, folder: Path) -> Path:
    """Write `export.json` to an existing folder."""
    path = folder / "export.json"
    with written_whole(path) as scratch:
        scratch.write_text(json.dumps(facts_of(model), indent=2), encoding="utf-8")
    return path


def facts_of(model: FittedModel) -> dict[str, Any]:
    """Return the functions that are exported, and what stands for the entries of data."""
    data = model.of_data
    return {
        "functions": {
            each.name: {"inputs": dict(each.inputs), "outputs": list(each.outputs)}
            for each in exported_functions(model)
        },
        "number_type": "float32, rows along the first axis",
        "x": _columns(data.format),
        "given": None if data.given is None else _columns(data.given),
        "missing": "NaN" if data.format.encodes_missing else "not allowed",
        "latent_dim": data.latent_dim,
        "levels": list(data.arguments.levels),  # of a hierarchy, the one next to the data first
        "likelihood": data.likelihood,
        "posterior": data.arguments.posterior,
        "prior": data.prior,
        "classes": list(model.given.columns[0].levels) if hasattr(model.recognition.encoder, "labels") else None,
    }


def _columns(format):
    """Return how rows become the numbers that functions read, and back."""
    if not hasattr(format, "model_columns"):
        offset = format.offset
        return {
            "columns": format.num_columns,
            "names": None if format.columns is None else list(format.columns),
            "multiply_bytes_by": format.scale,
            "subtract": None if offset is None else offset.tolist(),
            "image_shape": None if format.image_shape is None else list(format.image_shape),
        }
    of_data = {column.name: column for column in format.columns}
    return [_column(column, of_data.get(column.name)) for column in format.model_columns]


def _column(column, of_data):
    described = column.describe()
    facts = {name: described[name] for name in ("name", "family", "loc", "scale", "low", "high")}
    facts |= {"stored": STORED[column.family], "labels": list(of_data.levels) if of_data else []}
    if of_data is not None and of_data.origin:  # dates: x is counted from the first, in such steps
        unit = {"unit": of_data.storage.unit, "origin": of_data.origin, "step": of_data.step}
        facts |= {"x": "(units since 1970 - origin) / step", **unit}
    if column.kind.has_cells:
        facts |= {"edges": list(column.edges), "scores": list(column.scores)}
    return facts
