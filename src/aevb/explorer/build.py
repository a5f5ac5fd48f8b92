"""Write a model and its data as one HTML file."""

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from aevb import __version__
from aevb.data.label_data import LabelData
from aevb.data.run_data import RunData
from aevb.data.series import SequenceData
from aevb.explorer.arrays import pack
from aevb.explorer.bundle import bundle
from aevb.explorer.features import label_run_data, shown_model
from aevb.explorer.given import is_regressor
from aevb.explorer.model import check_explorable, describe, model_arrays
from aevb.explorer.points import choose_points
from aevb.explorer.predictions import prediction_contents
from aevb.explorer.sequence_contents import sequence_contents
from aevb.files import written_whole
from aevb.fitted import fitted_model


def write_page(
    path, vae: Any, run_data: RunData | SequenceData | LabelData, *, name: str = "", max_rows: int | None = None
) -> Path:
    """Write the page of a model.

    Args:
        path: Path of the page.
        vae: A fitted model, or its estimator.
        run_data: Its data.
        name: Name of the run.
        max_rows: Maximum number of datapoints shown; None for a number that keeps the page small.

    Returns:
        The path.

    Raises:
        NotExplorableError: The page does not support this model.
    """
    page = build_page(vae, run_data, name=name, max_rows=max_rows)
    with written_whole(path) as scratch:
        scratch.write_text(page, encoding="utf-8", newline="\n")
    return Path(path)


def build_page(
    vae: Any, run_data: RunData | SequenceData | LabelData, *, name: str = "", max_rows: int | None = None
) -> str:
    """Return the page of a model as text; see :func:`write_page`."""
    model = fitted_model(vae)
    if isinstance(run_data, SequenceData):
        facts, arrays = sequence_contents(model, run_data, name, max_rows)
        return _rendered("sequences", run_data.title, facts, arrays)
    check_explorable(model)
    if isinstance(run_data, LabelData):
        if is_regressor(model):
            facts, arrays = prediction_contents(model, run_data, name, max_rows)
            return _rendered("predictions", run_data.title, facts, arrays)
        run_data = label_run_data(model, run_data)
    model = shown_model(model)
    points = choose_points(model, run_data, max_rows)
    facts = {
        "title": run_data.dataset.title,
        "name": name,
        "model": describe(model),
        "data": {**points.facts, "binarization": run_data.binarization},
    }
    return _rendered("main", run_data.dataset.title, facts, {**model_arrays(model), **points.arrays})


_TEMPLATES = {
    "main": "explorer.html",
    "sequences": "sequences.html",
    "predictions": "predictions.html",
}  # by the page's entry module


def _rendered(entry, title, facts, arrays):
    from jinja2 import Environment, StrictUndefined

    table, packed = pack(arrays)
    script, style = bundle(entry, lambda module: _source(f"{module}.js")), _source("explorer.css")
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_source(_TEMPLATES[entry]))
    return template.render(
        title=f"{title}, explored",
        policy=_policy(script, style),
        script=script,
        style=style,
        facts=_inert_json({**facts, "version": __version__, "arrays": table}),
        arrays=packed,
    )


def _source(name):
    return files("aevb.explorer").joinpath("page", name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _policy(script, style):
    """Return a Content Security Policy: this script, this style, pictures made in the page, nothing else."""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _digest(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _inert_json(value):
    """Return JSON that cannot contain HTML tags, whatever the names in it are."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
