"""The report: one self-contained HTML file that works offline."""

import base64
import math
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

from aevb import runs
from aevb.data.run_data import RunData
from aevb.files import written_whole
from aevb.fitted import FittedModel
from aevb.fitted.card import LIMITS, data_words, decoder_words, encoder_words, model_facts
from aevb.models import LIKELIHOODS
from aevb.report.judgement import own_value, written
from aevb.report.link import explorer_line
from aevb.report.measures import UNIT, is_density
from aevb.report.pictures import pictures_of
from aevb.training.budget import batch_size_for

_ENDINGS = {
    "converged": "the held-out bound stopped improving",
    "max_epochs": "the maximum number of epochs was reached",
    "end_of_data": "the data ended",
    "interrupted": "interrupted",
    "diverged": "the loss became NaN or infinite; the last good state was kept",
    "failed": "reading the data failed",
}
_BINARIZATIONS = {
    "grey": "grey levels, each treated as the probability that its pixel is 1",
    "static": "binary draws of the grey levels, made once",
    "dynamic": "binary draws of the grey levels, new in each epoch; held-out rows are drawn once",
    "threshold": "grey levels above 0.5 as 1, others as 0",
    "binary": "zeros and ones, as given",
    "none": "numbers, as given",
}
_TABLE = "columns of different kinds, each with a family of its own; missing entries are integrated out"
_REFERENCES = {
    "independent_pixels": "independent pixels, no latent variables",
    "independent_levels": "independent pixels, no latent variables",
    "independent_gaussians": "independent Gaussian columns, no latent variables",
    "independent_columns": "independent columns, no latent variables",
    "grey_level_ceiling": "upper limit: the most that these grey levels allow",
}


def render_report(
    folder: Path, model: FittedModel, run_data: RunData, metrics: dict, pictures: list[str], **origin: str
) -> Path:
    """Write `report.html`.

    Args:
        folder: Folder of the report; it already contains the pictures, and `config.toml` if it is a run folder.
        model: The model.
        run_data: Its data.
        metrics: See :func:`aevb.report.measures.measure`.
        pictures: Names of the pictures, see :func:`aevb.report.pictures.draw_pictures`.
        origin: The ``command`` that created the run, and, as ``no_page``, why there is no interactive page, if so.

    Returns:
        The path of the report.
    """
    facts = common_facts(folder, model, run_data, metrics, pictures, **origin)
    return render(folder, "report.html", facts | _facts(model, run_data, metrics))


def render(folder: Path, name: str, facts: dict[str, Any]) -> Path:
    """Write `report.html` from one of the templates."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def load(name):
        return files("aevb.report").joinpath(name).read_text(encoding="utf-8")

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=FunctionLoader(load)
    )
    environment.filters["number"] = lambda value, digits=1: written(value, digits).replace("-", "−")
    with written_whole(folder / "report.html") as scratch:
        scratch.write_text(environment.get_template(name).render(facts), encoding="utf-8")
    return folder / "report.html"


def ranking(metrics: dict) -> tuple[str, list[dict]]:
    """Return a title, and this model among simple ones, worst first, all evaluated on the same rows."""
    models = {}
    if "baselines" in metrics:
        own, title = metrics["held_out_log_likelihood"], "log p(x)"
        for name, model in metrics["baselines"]["models"].items():
            models[f"{name} ({model['chosen']})" if model["chosen"] else name] = model["value"], model["std_error"]
    else:
        own = own_value(metrics)
        title = "Lower bound of log p(x)" if "held_out_lower_bound" in metrics else "log p(x)"
        for name, value in metrics.get("comparison", {}).items():
            if not (name == "grey_level_ceiling" and value == 0):
                models[_REFERENCES[name]] = value, None
    num_latent = metrics["active_units"]["of"]
    name = f"this model, {num_latent} latent variable{'s' * (num_latent != 1)}"
    if "dimensions" in own:
        bits = own["dimensions"] * math.log(2)
        name += f" ({own['bits_per_dimension']:.3f} bits per dimension)"
        models = {f"{words} ({-found[0] / bits:.3f} bits per dimension)": found for words, found in models.items()}
    models[name] = own["value"], own["std_error"]
    entries = [
        {"words": words, "value": value, "std_error": error, "is_own": words == name}
        for words, (value, error) in models.items()
    ]
    kind = "" if own["binarization"] == "none" or own["unit"] != UNIT else f" ({own['binarization']} data)"
    title = f"{title} of {own['rows']:,} held-out rows, {own['unit']}{kind}"
    return title, sorted(entries, key=lambda entry: entry["value"])


def number_of_digits(metrics: dict) -> int:
    """Return how many digits to show: two for small tables, whose differences are small."""
    return 2 if abs(metrics["held_out_log_likelihood"]["value"]) < 100 else 1


def common_facts(
    folder: Path,
    model: FittedModel,
    run_data: Any,
    metrics: dict,
    pictures: list[str],
    command: str = "",
    no_page: str = "",
) -> dict[str, Any]:
    """Return what all reports say; see :func:`render_report`."""
    config, known = folder / "config.toml", pictures_of(run_data)
    return {
        "name": folder.resolve().name,
        "run_data": run_data,
        "split": run_data.split,
        "model": model,
        "optimizer": model.arguments.optimizer if isinstance(model.arguments.optimizer, str) else "an optax optimizer",
        "ending": f"{_ENDINGS.get(model.record.stopped_because, model.record.stopped_because)}{_refit(model)}",
        "metrics": metrics,
        "card": {"data": data_words(model.of_data), **model_facts(model)},
        "limits": LIMITS,
        "pictures": [(name, known[name], _data_uri(folder / f"{name}.png")) for name in pictures],
        "explorer": explorer_line(folder, no_page),
        "command": command,
        "repeat": shlex.join(["aevb", "fit", "--config", str(config)]),
        "config": config.read_text(encoding="utf-8") if config.exists() else "",
        "versions": runs.versions(),
        "commit": runs.commit(),
        "machine": runs.machine(),
    }


def _facts(model, run_data, metrics) -> dict[str, Any]:
    title, entries = ranking(metrics)
    return {
        "title": run_data.dataset.title,
        "num_train": run_data.num_train,
        "num_test": len(run_data.test),
        "held_out": "held-out" if run_data.num_train else "given",
        "binarization": _read_as(model, run_data),
        "decoder": decoder_words(model),
        "encoder": encoder_words(model),
        "batches": f"batches of {_batch_size(model)} rows",
        "is_density": is_density(model),
        "is_grey": run_data.binarization == "grey" and not is_density(model),
        "digits": number_of_digits(metrics),
        "ranking_title": title,
        "ranking": entries,
    }


def _read_as(model, run_data):
    """Return in words how the data are read."""
    if model.is_table:
        return _TABLE
    if run_data.binarization == "grey" and is_density(model):
        return "levels between 0 and 1, as real numbers"
    if run_data.binarization == "grey" and model.likelihood in LIKELIHOODS and LIKELIHOODS[model.likelihood].levels:
        return "256 levels, each with a probability of its own"
    return _BINARIZATIONS[run_data.binarization]


def _refit(model):
    if model.record.refit_epochs is None:
        return ""
    # Not the test rows, on which the report's numbers are measured.
    return (
        f"; then refit for {model.record.refit_epochs:,} epochs, with the training rows that had been held out for this"
    )


def _batch_size(model):
    """Return M as it was used: "auto" depends on the rows per epoch, which the history has up to a partial batch."""
    if not model.record.history:
        return model.arguments.batch_size
    first = model.record.history[0]
    return batch_size_for(first["samples"] // first["epoch"], model.arguments.batch_size)


def _data_uri(picture: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(picture.read_bytes()).decode("ascii")
