"""The pictures of a report: what they show, and for which models."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aevb.data.labels import label_kind
from aevb.data.run_data import RunData
from aevb.explorer.active import active_latents
from aevb.inference.diagnostics import THRESHOLD
from aevb.models import has_real_support
from aevb.report.columns import column_histograms, column_reconstructions
from aevb.report.images import manifold, reconstructions, samples
from aevb.report.learning import learning_curve
from aevb.report.measures import some
from aevb.report.nearest import nearest_images
from aevb.report.plots import latent_scatter
from aevb.report.traversal import traversals
from aevb.report.units import active_units
from aevb.vae import VAE

MAX_CODES = 5000  # dots in the latent plane


class Picture(NamedTuple):
    """A picture of a model and its data."""

    heading: str
    caption: Callable[[VAE, RunData], str]
    fits: Callable[[VAE, RunData], bool]
    draw: Callable[[VAE, RunData, Path, int], Path]


def draw_pictures(vae: VAE, run_data: RunData, folder: Path, seed: int) -> list[str]:
    """Draw all pictures that suit a model and its data into a folder, as PNG and SVG; return their names."""
    names = [name for name, picture in PICTURES.items() if picture.fits(vae, run_data)]
    for name in names:
        PICTURES[name].draw(vae, run_data, folder / f"{name}.png", seed)
    return names


def _are_images(vae, run_data):
    return run_data.dataset.image_shape is not None


def _is_table(vae, run_data):
    return run_data.dataset.image_shape is None


def _has_training_images(vae, run_data):
    return _are_images(vae, run_data) and len(run_data.train) > 0


def _is_plane(vae, run_data):
    has_standard_prior = vae.prior is None and vae.get_params()["posterior"] in _GAUSSIANS
    return _are_images(vae, run_data) and vae.latent_dim_ == 2 and has_standard_prior


def _has_axes(vae, run_data):
    return _are_images(vae, run_data) and not _is_plane(vae, run_data)


def _has_plane_of_codes(vae, run_data):
    return vae.latent_dim_ >= 2 and has_real_support(vae.generative_.latent_distribution())


_GAUSSIANS = ("gaussian", "full-gaussian", "flow")  # with the prior N(0, I)


def _look(run_data) -> dict[str, Any]:
    return {"image_shape": run_data.dataset.image_shape, "cmap": "gray" if run_data.dataset.light_on_dark else "gray_r"}


def _draw_reconstructions(vae, run_data, path, seed):
    return reconstructions(
        vae, path, run_data.test[_of_each_label(run_data.test_labels, len(run_data.test))], **_look(run_data)
    )


def _labels(run_data):
    """Return the labels of all rows, training rows first; None if there are none."""
    if run_data.train_labels is None or run_data.test_labels is None:
        return None
    return np.concatenate([run_data.train_labels, run_data.test_labels])


def _draw_latent(vae, run_data, path, seed):
    rows, labels = np.concatenate([run_data.train, run_data.test]), _labels(run_data)
    if label_kind(labels) == "too many":
        labels = None
    labels = None if labels is None else some(labels, MAX_CODES)
    circles = vae.prior is None and vae.get_params()["posterior"] in _GAUSSIANS
    return latent_scatter(vae, path, some(rows, MAX_CODES), labels, circles=circles)


def _draw_units(vae, run_data, path, seed):
    return active_units(active_latents(vae, run_data), path)


def _of_each_label(labels, num_rows, most=20):
    """Return the indices of rows to show: some of each label, cycling through the labels, or evenly spread ones."""
    if labels is None or len(np.unique(labels)) > most // 2:
        return np.linspace(0, num_rows - 1, min(most, num_rows)).astype(int)
    each = most // len(np.unique(labels))
    members = [np.flatnonzero(labels == label)[:each] for label in np.unique(labels)]
    order = [row[place] for place in range(each) for row in members if place < len(row)]
    return np.array(order)[:most]


def _words(text):
    return lambda vae, run_data: text


def _learning_words(vae, run_data):
    if not vae._learner_kind.has_bound:
        return (
            "log p(x, z) at the samples of z that Monte Carlo EM draws. Without an encoder there is no lower bound and "
            "no held-out curve."
        )
    terms = ", and below it its two terms: reconstruction, and the KL divergence, which is subtracted"
    kept = "The parameters of the best held-out epoch are kept."
    if vae.refit_epochs_ is not None:
        kept = "In the end the model was refit on all training rows, including these, for as many epochs as were best."
    overfitting = f" If the held-out curve falls behind the training curve, the model is overfitting. {kept}"
    if vae._learner_kind.has_weight_posterior:
        return (
            "The lower bound during training. The training curve includes the cost of the weights, "
            "KL(q(θ) ‖ p(θ)) / N; the held-out curve does not." + overfitting
        )
    if vae.estimator_ == "importance":
        return (
            f"The importance-weighted bound with {vae.num_samples} sample{'s' * (vae.num_samples != 1)} of z per row, "
            "which this model was trained to maximize. It is tighter than the lower bound in the table above, so the "
            "two differ; it has no separate terms." + overfitting
        )
    return f"The lower bound during training{terms * ('reconstruction' in vae.history_[0])}." + overfitting


def _latent_words(vae, run_data):
    labels = _labels(run_data)
    num_labels = 0 if labels is None else len(np.unique(labels))
    dots = "Each dot is a row, at its code (the mean of q(z|x))."
    return {
        "none": dots,
        "classes": f"{dots} Its colour is its label. The model never saw the labels; where the colours separate, it "
        "has found the classes by itself.",
        "quantity": f"{dots} Its colour is the value of its label, which the model never saw.",
        "too many": f"{dots} There are {num_labels:,} different labels, too many to tell apart by colour.",
    }[label_kind(labels)]


def _units_words(vae, run_data):
    return (
        "A latent variable is active if its code varies over the data, with a variance above "
        f"{THRESHOLD:g} of the prior variance. An inactive one carries no information. Active does not mean important: "
        "the interactive page shows how many nats each variable carries."
    )


PICTURES: dict[str, Picture] = {
    "learning_curve": Picture(
        "Training",
        _learning_words,
        lambda vae, run_data: True,
        lambda vae, run_data, path, seed: learning_curve(vae, path),
    ),
    "samples": Picture(
        "New images",
        _words("Samples from the model: z is drawn from the prior and decoded."),
        _are_images,
        lambda vae, run_data, path, seed: samples(vae, path, seed=seed, **_look(run_data)),
    ),
    "nearest": Picture(
        "Is it memorizing?",
        _words(
            "A model that only repeats its training data shows the same image twice. Images that are of the same kind "
            "but differ in detail show that it has generalized."
        ),
        _has_training_images,
        lambda vae, run_data, path, seed: nearest_images(vae, path, run_data.train, seed=seed, **_look(run_data)),
    ),
    "reconstructions": Picture(
        "Held-out images and their reconstructions",
        _words("Each image is encoded and decoded again. Details that are lost are not in the code."),
        _are_images,
        _draw_reconstructions,
    ),
    "columns": Picture(
        "Columns: data and samples",
        _words("Where model and data agree, the two histograms of a column do too."),
        _is_table,
        lambda vae, run_data, path, seed: column_histograms(
            vae, path, some(np.concatenate([run_data.train, run_data.test])), run_data.dataset.columns, seed=seed
        ),
    ),
    "reconstructions_by_column": Picture(
        "Held-out rows and their reconstructions",
        _words("Each row is encoded and decoded again. A flat cloud is a column that the code says nothing about."),
        _is_table,
        lambda vae, run_data, path, seed: column_reconstructions(vae, path, run_data.test, run_data.dataset.columns),
    ),
    "manifold": Picture(
        "The latent plane, decoded",
        _words("A map of everything the model can generate. Neighbours in the plane look alike."),
        _is_plane,
        lambda vae, run_data, path, seed: manifold(vae, path, **_look(run_data)),
    ),
    "traversals": Picture(
        "Latent traversals",
        _words("What changes when one latent variable varies and the others stay fixed. Most informative ones first."),
        _has_axes,
        lambda vae, run_data, path, seed: traversals(vae, path, some(run_data.test, 1000), **_look(run_data)),
    ),
    "latent": Picture(
        "The data in the latent space",
        _latent_words,
        _has_plane_of_codes,
        _draw_latent,
    ),
    "units": Picture(
        "Active latent variables",
        _units_words,
        lambda vae, run_data: vae.latent_dim_ > 2,
        _draw_units,
    ),
}
