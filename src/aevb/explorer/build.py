"""From a model and its data to one HTML file."""

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path

from aevb import __version__
from aevb.data.run_data import RunData
from aevb.explorer.arrays import pack
from aevb.explorer.bundle import bundle
from aevb.explorer.model import check_explorable, describe, model_arrays
from aevb.explorer.points import choose_points
from aevb.files import written_whole
from aevb.vae import VAE
from aevb.vae.conventions import returning_arrays


def write_page(path, vae: VAE, run_data: RunData, *, name: str = "", max_rows: int | None = None) -> Path:
    """Write the page of a model.

    Args:
        path: Where it goes.
        vae: The model.
        run_data: Its data.
        name: Of the run.
        max_rows: Number of datapoints shown; None for as many as keep the page small.

    Returns:
        The path.

    Raises:
        NotExplorableError: There is no page for such a model.
    """
    page = build_page(vae, run_data, name=name, max_rows=max_rows)
    with written_whole(path) as scratch:
        scratch.write_text(page, encoding="utf-8", newline="\n")
    return Path(path)


def build_page(vae: VAE, run_data: RunData, *, name: str = "", max_rows: int | None = None) -> str:
    """Return the page of a model as text; see :func:`write_page`."""
    from jinja2 import Environment, StrictUndefined

    check_explorable(vae)
    vae = returning_arrays(vae)
    points = choose_points(vae, run_data, max_rows)
    table, arrays = pack({**model_arrays(vae), **points.arrays})
    facts = {
        "title": run_data.dataset.title,
        "name": name,
        "version": __version__,
        "model": describe(vae),
        "data": {**points.facts, "binarization": run_data.binarization},
        "arrays": table,
    }
    script, style = bundle("main", lambda module: _source(f"{module}.js")), _source("explorer.css")
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_source("explorer.html"))
    return template.render(
        title=f"{run_data.dataset.title}, explored",
        policy=_policy(script, style),
        script=script,
        style=style,
        facts=_inert_json(facts),
        arrays=arrays,
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
    """Return JSON in which no element can begin or end, whatever a name says."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
