"""The pictures in the report of a model with labels, targets or covariates."""

import numpy as np

from aevb.data.label_data import (
    CLASSIFIER,
    CONDITIONAL,
    REGRESSOR,
    kind_of_labels,
    label_names,
)
from aevb.fitted import coding, labels, prediction
from aevb.models import Datapoint
from aevb.report.calibration import (
    plot_confusion,
    plot_predictions,
    plot_reliability,
    plot_transforms,
)
from aevb.report.images import as_values, limits_of, pairs
from aevb.report.label_columns import draw_columns, shown_columns
from aevb.report.label_measures import (
    LEVEL,
    observed_targets,
    probability_transforms,
    reliability,
    target_draws,
)
from aevb.report.label_rows import conditions, judged_rows, which_rows
from aevb.report.learning import curve_words, learning_curve
from aevb.report.picture import Picture, words

MAX_CONFUSED = 30  # labels in the table of predictions
MAX_TARGETS = 3  # that are shown
NUM_IMAGES, NUM_INTERVALS = 10, 300


def _are_images(model, data):
    return data.image_shape is not None


# ---- images ----------------------------------------------------------------------------------------------------------


def _draw_bands(model, data, path, bands, title, subtitle):
    limits = limits_of(model.of_data, np.concatenate(list(bands.values())))
    return pairs(path, bands, title, subtitle, limits=limits, columns=NUM_IMAGES, **data.look)


def _draw_samples(model, data, path, seed):
    names, given = conditions(model, data)
    means = {"mean": True, "random_state": seed}
    repeated = np.repeat(given, NUM_IMAGES, axis=0)
    if kind_of_labels(model) == CLASSIFIER:
        rows = labels.sample_of_labels(model, len(repeated), repeated[:, 0].astype(int), **means)
    else:
        rows = coding.sample(model, len(repeated), given=repeated, **means)
    rows = np.asarray(rows).reshape(len(names), NUM_IMAGES, -1)
    subtitle = "means of p(x|z, y) for draws of z from the prior; each row of images has one y"
    return _draw_bands(model, data, path, dict(zip(names, rows, strict=True)), "New images for each y", subtitle)


def _some_of_each(model, data):
    """Return a few rows, of different labels if y is one."""
    rows = judged_rows(model, data)
    order = np.argsort(np.random.default_rng(0).permutation(len(rows.values)), kind="stable")
    if label_names(model) is not None:
        seen: dict[float, int] = {}
        rank = np.empty(len(order))
        for number in order:
            label = rows.given[number, 0]
            rank[number] = seen.get(label, 0)
            seen[label] = seen.get(label, 0) + 1
        order = np.lexsort((rows.given[:, 0], rank))
    chosen = np.sort(order[:NUM_IMAGES]) if label_names(model) is None else order[:NUM_IMAGES]
    return Datapoint(rows.values[chosen], given=rows.given[chosen])


def _draw_reconstructions(model, data, path, seed):
    rows = _some_of_each(model, data)
    bands = {"original": as_values(model, rows.values), "reconstruction": coding.reconstruct(model, rows)}
    return _draw_bands(model, data, path, bands, "Reconstructions", "the decoder's mean at the code, with the same y")


def _draw_counterfactuals(model, data, path, seed):
    rows, (names, given) = _some_of_each(model, data), conditions(model, data)
    bands = {"original": as_values(model, rows.values)}
    for name, y in zip(names, given, strict=True):
        new = np.repeat(y[None], len(rows.values), axis=0)
        bands[f"as {name}"] = coding.reconstruct(model, rows, given=new)
    subtitle = "each image is encoded with its own y, and decoded with another"
    return _draw_bands(model, data, path, bands, "The same z with another y", subtitle)


# ---- predictions -----------------------------------------------------------------------------------------------------


def _draw_reliability(model, data, path, seed):
    rows = judged_rows(model, data)
    found = reliability(labels.label_probabilities(model, rows.values), rows.given[:, 0].astype(int), seed)
    return plot_reliability(
        path, found, f"{which_rows(model, data)}; {found.by_chance:.3f} would be expected by chance"
    )


def _draw_confusion(model, data, path, seed):
    rows, names = judged_rows(model, data), label_names(model)
    assert names is not None
    predicted = labels.label_probabilities(model, rows.values).argmax(axis=1)
    counts = np.zeros((len(names), len(names)), int)
    np.add.at(counts, (rows.given[:, 0].astype(int), predicted), 1)
    return plot_confusion(path, counts, names, which_rows(model, data))


def _number_targets(model):
    """Return the places and names of targets that are numbers, as far as they are shown."""
    columns = [(place, column) for place, column in enumerate(model.format.columns)]
    return [(place, str(c.name)) for place, c in columns if not c.column.kind.has_levels][:MAX_TARGETS]


def _draw_transforms(model, data, path, seed):
    rows = judged_rows(model, data)
    u = probability_transforms(target_draws(model, rows, seed), observed_targets(model, rows))
    targets = {name: u[:, place] for place, name in _number_targets(model)}
    return plot_transforms(
        path, targets, f"{which_rows(model, data)}; grey: two standard errors around right quantiles"
    )


def _draw_predictions(model, data, path, seed):
    rows = judged_rows(model, data, NUM_INTERVALS)
    draws, values = target_draws(model, rows, seed), observed_targets(model, rows)
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    means = prediction.predictive_mean(model, rows.given)
    targets = {name: tuple(part[:, p] for part in (values, means, low, high)) for p, name in _number_targets(model)}
    subtitle = f"{which_rows(model, data, NUM_INTERVALS)}; lines are {LEVEL:.0%} intervals, red where they miss"
    return plot_predictions(path, targets, subtitle)


# ---- the list --------------------------------------------------------------------------------------------------------


def _of(*kinds, images=None):
    """Return a function that says whether a picture fits: for models of these kinds, of images or not, or both."""

    def fits(model, data):
        return kind_of_labels(model) in kinds and (images is None or images == _are_images(model, data))

    return fits


LABEL_PICTURES: dict[str, Picture] = {
    "reliability": Picture(
        "Can its probabilities be believed?",
        words(
            "Of the rows whose predicted label has a probability of 80%, 80% should have that label: the dots, with "
            "95% intervals, should lie on the line. Red lines are the differences, whose average over the rows "
            "is the expected calibration error. Dots below the line: the classifier is too sure."
        ),
        _of(CLASSIFIER),
        _draw_reliability,
    ),
    "confusion": Picture(
        "What it mistakes for what",
        words("Numbers of rows. Colours are shares of each label, so that rare labels can be read too."),
        lambda model, data: _of(CLASSIFIER)(model, data) and len(label_names(model) or ()) <= MAX_CONFUSED,
        _draw_confusion,
    ),
    "quantiles": Picture(
        "Can its intervals be believed?",
        words(
            "If the predicted distributions are right, the probability that they give to targets below the observed "
            "one is uniform: the histogram is flat, and the line is straight. A hump in the middle: the distributions "
            "are too wide; high ends: too narrow; a slope: they lie too low or too high."
        ),
        lambda model, data: _of(REGRESSOR)(model, data) and bool(_number_targets(model)),
        _draw_transforms,
    ),
    "predictions": Picture(
        "Predicted and observed",
        words(
            "Each dot is a row, and the line through it the interval that should contain it. An interval may be wide "
            "because it covers several modes: `sample` draws from the distribution itself."
        ),
        lambda model, data: _of(REGRESSOR)(model, data) and bool(_number_targets(model)),
        _draw_predictions,
    ),
    "samples": Picture(
        "New images for each y",
        words("The model generates what it is asked for."),
        _of(CLASSIFIER, CONDITIONAL, images=True),
        _draw_samples,
    ),
    "reconstructions": Picture(
        "Images and their reconstructions",
        words("Each image is encoded and decoded again. Details that are lost are neither in the code nor in y."),
        _of(CONDITIONAL, images=True),
        _draw_reconstructions,
    ),
    "counterfactuals": Picture(
        "What if y were another?",
        words("The code z keeps what y does not say, such as the style of handwriting."),
        _of(CONDITIONAL, images=True),
        _draw_counterfactuals,
    ),
    "columns_by_y": Picture(
        "Columns: data and samples for each y",
        words(
            "Where model and data agree, so do the lines. Columns of labels have bars, the shares of the labels: the "
            "upper one in the data, the lower one in samples."
        ),
        lambda model, data: _of(CLASSIFIER, CONDITIONAL, images=False)(model, data) and bool(shown_columns(model)),
        draw_columns,
    ),
    "learning_curve": Picture(
        "Training",
        lambda model, data: f"The objective during training. {curve_words(model)}",
        lambda model, data: True,
        lambda model, data, path, seed: learning_curve(model, path),
    ),
}
