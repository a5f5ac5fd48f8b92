"""The pictures of a report: what they show, and for which models."""

from pathlib import Path
from typing import Any

import numpy as np

from aevb.data.label_data import LabelData
from aevb.data.labels import label_kind
from aevb.data.run_data import RunData
from aevb.data.series import SequenceData
from aevb.estimators import is_weighted
from aevb.explorer.active import active_latents
from aevb.fitted import FittedModel
from aevb.inference.diagnostics import THRESHOLD
from aevb.models import STANDARD, has_real_support
from aevb.report.columns import column_histograms, column_reconstructions
from aevb.report.images import manifold, reconstructions, samples
from aevb.report.label_pictures import LABEL_PICTURES
from aevb.report.learning import curve_words, learning_curve
from aevb.report.nearest import nearest_images
from aevb.report.picture import Picture, words
from aevb.report.plots import latent_scatter
from aevb.report.sequence_pictures import SEQUENCE_PICTURES
from aevb.report.some_rows import some
from aevb.report.table_pictures import TABLE_PICTURES, telling_column
from aevb.report.traversal import traversals
from aevb.report.units import active_units

MAX_CODES = 5000  # dots in the latent plane


def pictures_of(run_data: RunData | SequenceData | LabelData) -> dict[str, Picture]:
    """Return the pictures for this form of data, by name."""
    others: dict[type, dict[str, Picture]] = {SequenceData: SEQUENCE_PICTURES, LabelData: LABEL_PICTURES}
    return others.get(type(run_data), PICTURES)


def draw_pictures(model: FittedModel, run_data: Any, folder: Path, seed: int) -> list[str]:
    """Draw all pictures that suit a model and its data into a folder, as PNG and SVG; return their names."""
    known = pictures_of(run_data)
    names = [name for name, picture in known.items() if picture.fits(model, run_data)]
    for name in names:
        known[name].draw(model, run_data, folder / f"{name}.png", seed)
    return names


def _are_images(model, run_data):
    return run_data.dataset.image_shape is not None


def _are_numbers(model, run_data):
    return run_data.dataset.image_shape is None and not model.is_table


def _has_training_images(model, run_data):
    return _are_images(model, run_data) and len(run_data.train) > 0


def _is_plane(model, run_data):
    return _are_images(model, run_data) and model.latent_dim == 2 and _has_normal_prior(model)


def _has_normal_prior(model):
    return model.prior == STANDARD and model.arguments.posterior in _GAUSSIANS


def _has_axes(model, run_data):
    return _are_images(model, run_data) and not _is_plane(model, run_data)


def _has_plane_of_codes(model, run_data):
    return model.latent_dim >= 2 and has_real_support(model.generative.latent_distribution())


_GAUSSIANS = ("gaussian", "full-gaussian", "flow")  # with the prior N(0, I)


def _look(run_data) -> dict[str, Any]:
    return {"image_shape": run_data.dataset.image_shape, "cmap": "gray" if run_data.dataset.light_on_dark else "gray_r"}


def _draw_reconstructions(model, run_data, path, seed):
    return reconstructions(
        model, path, run_data.test[_of_each_label(run_data.test_labels, len(run_data.test))], **_look(run_data)
    )


def _labels(run_data):
    """Return the labels of all rows, training rows first; None if there are none."""
    if run_data.train_labels is None or run_data.test_labels is None:
        return None
    return np.concatenate([run_data.train_labels, run_data.test_labels])


def _draw_latent(model, run_data, path, seed):
    rows, labels = some(np.concatenate([run_data.train, run_data.test]), MAX_CODES), _labels(run_data)
    labels = None if labels is None or label_kind(labels) == "too many" else some(labels, MAX_CODES)
    if labels is None and (column := telling_column(model, run_data)) is not None:
        labels = column.labels(rows)
    return latent_scatter(model, path, rows, labels, circles=_has_normal_prior(model))


def _draw_units(model, run_data, path, seed):
    return active_units(active_latents(model, run_data), path)


def _of_each_label(labels, num_rows, most=20):
    """Return the indices of rows to show: some of each label, cycling through the labels, or evenly spread ones."""
    if labels is None or len(np.unique(labels)) > most // 2:
        return np.linspace(0, num_rows - 1, min(most, num_rows)).astype(int)
    each = most // len(np.unique(labels))
    members = [np.flatnonzero(labels == label)[:each] for label in np.unique(labels)]
    order = [row[place] for place in range(each) for row in members if place < len(row)]
    return np.array(order)[:most]


def _learning_words(model, run_data):
    if not model.learner.has_bound:
        return (
            "log p(x, z) at the samples of z that Monte Carlo EM draws. Without an encoder there is no lower bound and "
            "no held-out curve."
        )
    terms = ", and below it its two terms: reconstruction, and the KL divergence, which is subtracted"
    overfitting = f" {curve_words(model)}"
    if model.learner.has_weight_posterior:
        return (
            "The lower bound during training. The training curve includes the cost of the weights, "
            "KL(q(θ) ‖ p(θ)) / N; the held-out curve does not." + overfitting
        )
    if is_weighted(model.estimator):
        num_samples = model.num_samples
        return (
            f"The importance-weighted bound with {num_samples} sample{'s' * (num_samples != 1)} of z per row, "
            "which this model was trained to maximize. It is tighter than the lower bound in the table above, so the "
            "two differ; it has no separate terms." + overfitting
        )
    shown = terms * any("reconstruction" in row for row in model.record.history)
    return f"The lower bound during training{shown}.{_level_words(model)}" + overfitting


def _level_words(model):
    """Return the KL divergence of each level of a hierarchy at the end; nothing for others."""
    row = model.record.history[-1]
    names = [f"kl_divergence_{number + 1}" for number in range(len(model.arguments.levels))]
    parts = [f"{row.get('validation_' + name, row[name]):.2f}" for name in names if name in row]
    if not parts:
        return ""
    return (
        f" In the last epoch the KL divergence of the levels, that next to the data first, is {', '.join(parts)} nats."
    )


def _latent_words(model, run_data):
    labels = _labels(run_data)
    num_labels = 0 if labels is None else len(np.unique(labels))
    dots = "Each dot is a row, at its code (the mean of q(z|x))."
    if labels is None and (column := telling_column(model, run_data)) is not None:
        return f"{dots} Its colour is its {column.name}, the column of labels that the codes tell most about."
    return {
        "none": dots,
        "classes": f"{dots} Its colour is its label. The model never saw the labels; where the colours separate, it "
        "has found the classes by itself.",
        "quantity": f"{dots} Its colour is the value of its label, which the model never saw.",
        "too many": f"{dots} There are {num_labels:,} different labels, too many to tell apart by colour.",
    }[label_kind(labels)]


def _units_words(model, run_data):
    where = "metrics.json tells" if model.is_table else "the interactive page shows"
    return (
        "A latent variable is active if its code varies between rows, with a variance above "
        f"{THRESHOLD:g} of the prior variance. An inactive one carries no information. Active does not mean important: "
        f"{where} how many nats each variable carries."
    )


PICTURES: dict[str, Picture] = {
    "learning_curve": Picture(
        "Training",
        _learning_words,
        lambda model, run_data: True,
        lambda model, run_data, path, seed: learning_curve(model, path),
    ),
    "samples": Picture(
        "New images",
        words("Samples from the model: z is drawn from the prior and decoded."),
        _are_images,
        lambda model, run_data, path, seed: samples(model, path, seed=seed, **_look(run_data)),
    ),
    "nearest": Picture(
        "Is it memorizing?",
        words(
            "A model that only repeats its training data shows the same image twice. Images that are of the same kind "
            "but differ in detail show that it has generalized."
        ),
        _has_training_images,
        lambda model, run_data, path, seed: nearest_images(model, path, run_data.train, seed=seed, **_look(run_data)),
    ),
    "reconstructions": Picture(
        "Held-out images and their reconstructions",
        words("Each image is encoded and decoded again. Details that are lost are not in the code."),
        _are_images,
        _draw_reconstructions,
    ),
    "columns": Picture(
        "Columns: data and samples",
        words("Where model and data agree, the two histograms of a column do too."),
        _are_numbers,
        lambda model, run_data, path, seed: column_histograms(
            model, path, some(np.concatenate([run_data.train, run_data.test])), run_data.dataset.columns, seed=seed
        ),
    ),
    "reconstructions_by_column": Picture(
        "Held-out rows and their reconstructions",
        words("Each row is encoded and decoded again. A flat cloud is a column that the code says nothing about."),
        _are_numbers,
        lambda model, run_data, path, seed: column_reconstructions(
            model, path, run_data.test, run_data.dataset.columns
        ),
    ),
    **TABLE_PICTURES,
    "manifold": Picture(
        "The latent plane, decoded",
        words("A map of everything the model can generate. Neighbours in the plane look alike."),
        _is_plane,
        lambda model, run_data, path, seed: manifold(model, path, **_look(run_data)),
    ),
    "traversals": Picture(
        "Latent traversals",
        words("What changes when one latent variable varies and the others stay fixed. Most informative ones first."),
        _has_axes,
        lambda model, run_data, path, seed: traversals(model, path, some(run_data.test, 1000), **_look(run_data)),
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
        lambda model, run_data: model.latent_dim > 2,
        _draw_units,
    ),
}
