"""The pictures of a run: which there are, what they show, and for which models."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aevb.data.trial import Trial
from aevb.models import has_real_support
from aevb.report.columns import column_histograms, column_reconstructions
from aevb.report.images import manifold, reconstructions, samples
from aevb.report.learning import learning_curve
from aevb.report.measures import ACTIVE, some
from aevb.report.nearest import nearest_images
from aevb.report.plots import MAX_CLASSES, latent_scatter
from aevb.report.traversal import traversals
from aevb.report.units import active_units
from aevb.vae import VAE

MAX_CODES = 5000  # dots in the latent plane


class Picture(NamedTuple):
    """A picture of a run."""

    heading: str
    caption: str
    fits: Callable[[VAE, Trial], bool]
    draw: Callable[[VAE, Trial, Path, int], Path]


def draw_pictures(vae: VAE, trial: Trial, folder: Path, seed: int) -> list[str]:
    """Draw all pictures that suit a model and its data into a folder, as PNG and SVG; return their names."""
    names = [name for name, picture in PICTURES.items() if picture.fits(vae, trial)]
    for name in names:
        PICTURES[name].draw(vae, trial, folder / f"{name}.png", seed)
    return names


def _are_images(vae, trial):
    return trial.dataset.image_shape is not None


def _is_table(vae, trial):
    return trial.dataset.image_shape is None


def _is_plane(vae, trial):
    return _are_images(vae, trial) and vae.latent_dim == 2 and vae.get_params()["posterior"] in _GAUSSIANS


def _has_axes(vae, trial):
    return _are_images(vae, trial) and not _is_plane(vae, trial)


def _has_plane_of_codes(vae, trial):
    return vae.latent_dim >= 2 and has_real_support(vae.generative_.latent_distribution())


_GAUSSIANS = ("gaussian", "full-gaussian", "flow")  # with the prior N(0, I)


def _look(trial) -> dict[str, Any]:
    return {"image_shape": trial.dataset.image_shape, "cmap": "gray" if trial.dataset.light_on_dark else "gray_r"}


def _draw_reconstructions(vae, trial, path, seed):
    return reconstructions(vae, path, trial.test[_of_each_label(trial.test_labels, len(trial.test))], **_look(trial))


def _draw_latent(vae, trial, path, seed):
    rows = np.concatenate([trial.train, trial.test])
    labels = None
    if trial.train_labels is not None and trial.test_labels is not None:
        labels = some(np.concatenate([trial.train_labels, trial.test_labels]), MAX_CODES)
    circles = vae.get_params()["posterior"] in _GAUSSIANS
    return latent_scatter(vae, path, some(rows, MAX_CODES), _as_classes(labels), circles=circles)


def _draw_units(vae, trial, path, seed):
    return active_units(vae.transform(some(trial.test)).var(axis=0), ACTIVE, path)


def _as_classes(labels):
    """Words of which there are too many to be classes say nothing as colours."""
    if labels is None or labels.dtype.kind in "iufb":
        return labels
    return None if len(np.unique(labels)) > MAX_CLASSES else labels


def _of_each_label(labels, num_rows, most=20):
    """Return the numbers of rows to show: two of each label, in two runs through the labels, or some."""
    if labels is None or len(np.unique(labels)) > most // 2:
        return np.linspace(0, num_rows - 1, min(most, num_rows)).astype(int)  # from all over a film
    each = most // len(np.unique(labels))
    members = [np.flatnonzero(labels == label)[:each] for label in np.unique(labels)]
    order = [row[place] for place in range(each) for row in members if place < len(row)]
    return np.array(order)[:most]


PICTURES: dict[str, Picture] = {
    "learning_curve": Picture(
        "Learning",
        "The bound while learning, and below it its two terms: how well codes bring back their rows, and what the "
        "codes cost, which the bound pays. If the held-out curve of the bound falls behind the training curve, the "
        "model learns its data by heart; the parameters of the best epoch are kept.",
        lambda vae, trial: True,
        lambda vae, trial, path, seed: learning_curve(vae, path),
    ),
    "samples": Picture(
        "New images",
        "What the model dreams up: z is drawn from the prior and decoded.",
        _are_images,
        lambda vae, trial, path, seed: samples(vae, path, seed=seed, **_look(trial)),
    ),
    "nearest": Picture(
        "Is it memorizing?",
        "A model that only repeats its training data shows the same picture twice. What is alike in kind and differs "
        "in detail was learned.",
        _are_images,
        lambda vae, trial, path, seed: nearest_images(vae, path, trial.train, seed=seed, **_look(trial)),
    ),
    "reconstructions": Picture(
        "Images kept aside, and what the model makes of them",
        "Each image goes through the latent code and back. What is lost on the way, the code does not hold.",
        _are_images,
        _draw_reconstructions,
    ),
    "columns": Picture(
        "The columns, and what the model draws",
        "If model and data agree, the two histograms of a column do.",
        _is_table,
        lambda vae, trial, path, seed: column_histograms(
            vae, path, some(np.concatenate([trial.train, trial.test])), trial.dataset.columns, seed=seed
        ),
    ),
    "reconstructions_by_column": Picture(
        "Rows kept aside, and what the model makes of them",
        "Each row goes through the latent code and back. A flat cloud is a column that the code does not hold.",
        _is_table,
        lambda vae, trial, path, seed: column_reconstructions(vae, path, trial.test, trial.dataset.columns),
    ),
    "manifold": Picture(
        "The latent plane, decoded",
        "A map of all that the model can draw: neighbours in the plane are alike.",
        _is_plane,
        lambda vae, trial, path, seed: manifold(vae, path, **_look(trial)),
    ),
    "traversals": Picture(
        "Along the latent axes",
        "What one latent variable changes while the others rest.",
        _has_axes,
        lambda vae, trial, path, seed: traversals(vae, path, some(trial.test, 1000), **_look(trial)),
    ),
    "latent": Picture(
        "Where the data lie in the latent space",
        "Each dot is a datapoint at its code. Labels play no part in learning; where colours part by themselves, the "
        "model has found what the labels name.",
        _has_plane_of_codes,
        _draw_latent,
    ),
    "units": Picture(
        "Active latent variables",
        "A latent variable whose posterior mean hardly changes from one datapoint to the next carries nothing.",
        lambda vae, trial: vae.latent_dim > 2,
        _draw_units,
    ),
}
