"""The report: one HTML file that needs nothing else, neither the network nor the pictures beside it."""

import base64
from importlib.resources import files
from pathlib import Path
from typing import Any

from aevb import runs
from aevb.data.trial import Trial
from aevb.files import written_whole
from aevb.models import LIKELIHOODS
from aevb.report.link import explorer_line
from aevb.report.pictures import PICTURES
from aevb.vae import VAE

_ENDINGS = {
    "converged": "the held-out bound had stopped rising",
    "max_epochs": "all epochs were done",
    "end_of_data": "the data ended",
    "interrupted": "it was interrupted",
    "diverged": "a number became infinite, and the last good state was kept",
    "failed": "the data failed",
}
_BINARIZATIONS = {
    "grey": "grey levels, each counting as the probability that its pixel is 1",
    "static": "binary draws of the grey levels, made once",
    "dynamic": "binary draws of the grey levels, fresh in each epoch; held-out rows are drawn once",
    "threshold": "grey levels above a half as 1, others as 0",
    "binary": "zeros and ones, as the data came",
    "none": "numbers as they are",
}


def write_report(folder: Path, vae: VAE, trial: Trial, metrics: dict, pictures: list[str], command: str) -> Path:
    """Write `report.html` into a run's folder.

    Args:
        folder: Of the run; the pictures and `config.toml` are there already.
        vae: The model.
        trial: Its data.
        metrics: See :func:`aevb.report.measures.measure`.
        pictures: Names of the pictures, see :func:`aevb.report.pictures.draw_pictures`.
        command: That made the run.

    Returns:
        The path of the report.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = lambda value, digits=1: f"{value:,.{digits}f}".replace("-", "−")
    template = environment.from_string(files("aevb.report").joinpath("report.html").read_text(encoding="utf-8"))
    page = template.render(_facts(folder, vae, trial, metrics, pictures, command))
    with written_whole(folder / "report.html") as scratch:
        scratch.write_text(page, encoding="utf-8")
    return folder / "report.html"


def _facts(folder, vae, trial, metrics, pictures, command) -> dict[str, Any]:
    return {
        "name": folder.name,
        "title": trial.dataset.title,
        "num_train": trial.num_train,
        "num_test": len(trial.test),
        "split": trial.split,
        "binarization": _BINARIZATIONS[trial.binarization],
        "model": vae,
        "posterior": vae.get_params()["posterior"],
        "is_density": LIKELIHOODS[vae.likelihood_].density,
        "is_grey": trial.binarization == "grey" and not LIKELIHOODS[vae.likelihood_].density,
        "ending": _ENDINGS.get(vae.stopped_because_, vae.stopped_because_),
        "metrics": metrics,
        "own_value": metrics.get("held_out_lower_bound", metrics["held_out_log_likelihood"])["value"],
        "comparisons": _comparisons(metrics["comparison"]),
        "pictures": [(name, PICTURES[name], _data_uri(folder / f"{name}.png")) for name in pictures],
        "explorer": explorer_line(folder),
        "command": command,
        "repeat": f"aevb fit --config {folder / 'config.toml'}",
        "config": (folder / "config.toml").read_text(encoding="utf-8"),
        "versions": runs.versions(),
        "commit": runs.commit(),
        "machine": runs.machine(),
    }


def _comparisons(comparison):
    words = {
        "independent_pixels": "each pixel on its own, without latent variables",
        "independent_gaussians": "each column on its own, a Gaussian, without latent variables",
        "grey_level_ceiling": "the most that these grey levels allow",
    }
    return {
        words[name]: value for name, value in comparison.items() if not (name == "grey_level_ceiling" and value == 0)
    }


def _data_uri(picture: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(picture.read_bytes()).decode("ascii")
