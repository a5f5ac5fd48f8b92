"""The datapoints that a page shows: their values, codes and labels."""

from typing import Any, NamedTuple

import numpy as np

from aevb.data.frames.stored import LABELS
from aevb.data.kinds import are_grey_levels, sample_rows
from aevb.data.labels import label_kind
from aevb.data.run_data import RunData
from aevb.explorer.active import MAX_ROWS_WITHOUT_ENCODER, active_latents, evenly
from aevb.explorer.arrays import as_half
from aevb.explorer.fields import describe_fields
from aevb.explorer.given import colours, rows_given
from aevb.explorer.latents import describe_latents
from aevb.explorer.model import has_encoder
from aevb.fitted import FittedModel, coding, likelihoods
from aevb.models import LIKELIHOODS, Datapoint

MAX_ROWS = 2000
MAX_VALUES = 1_600_000  # 2,000 rows of 28 x 28: about half a megabyte when compressed


class Points(NamedTuple):
    """Datapoints for a page."""

    facts: dict[str, Any]  # for JSON
    arrays: dict[str, np.ndarray]


def choose_points(model: FittedModel, run_data: RunData, most: int | None = None) -> Points:
    """Return datapoints evenly spread over the data, with their codes.

    Args:
        model: The model.
        run_data: Its data; held-out rows come first.
        most: Maximum number of rows; None for a number that keeps the page small.
    """
    rows, labels, num_held_out = _rows(model, run_data, most)
    x: Any = rows
    rows, _, given = Datapoint.of(x)
    if given is not None:
        labels = colours(model, given)
    codes = np.asarray(coding.posterior_means(model, x), np.float32)  # (n, J)
    values, shape = model.matrix.as_read(rows), run_data.dataset.image_shape
    means, stds = _columns(model, values)
    latent_facts, latent_arrays = describe_latents(model, x, codes)
    arrays = {
        "rows": _compact(model, model.matrix.shifted(rows)),
        "codes": codes,
        "column_means": means,
        "column_stds": stds,
        **latent_arrays,
    }
    if given is not None:
        arrays["given"] = given.astype(np.float32)
    label_facts, label_numbers = _labels(labels)
    if label_numbers is not None:
        arrays["labels"] = label_numbers
    facts = {
        "offset": None if model.matrix.offset is None else [float(value) for value in model.matrix.offset],  # (D,)
        "row_scale": float(model.matrix.scale_of(rows)),
        "num_held_out": num_held_out,
        "labels": label_facts,
        **latent_facts,
        "active": active_latents(model, run_data).is_active.tolist(),
        "range": [0, 1] if shape is None else _range(values if model.matrix.offset is None else rows),
        "image_shape": shape,
        "light_on_dark": run_data.dataset.light_on_dark,
        "fields": None if shape else describe_fields(model, values, run_data.dataset.columns or ()),
        "typical_bound": _typical_bound(model, x),
    }
    return Points(facts, arrays)


def _columns(model, values):
    """Return a typical entry of each column, the median or the most frequent label, and the standard deviations."""
    if not model.is_table:
        return values.mean(axis=0).astype(np.float32), values.std(axis=0).astype(np.float32)
    means, stds = np.zeros((2, values.shape[1]), np.float32)
    for place, column in enumerate(model.format.model_columns):
        seen = values[~np.isnan(values[:, place]), place]
        if not len(seen):
            continue
        stds[place] = seen.std()
        if column.family in LABELS:
            means[place] = np.bincount(seen.astype(int)).argmax()
        else:
            means[place] = np.quantile(seen, 0.5, method="lower")  # of counts, a whole number
    return means, stds


def _range(values):
    """Return the values of black and white: the ends of the scale for grey levels, otherwise nearly the extremes."""
    for high in (1, 255):
        if are_grey_levels(sample_rows(values), values.min(), values.max()) and values.max() <= high:
            return [0.0, float(high)]
    return [float(value) for value in np.quantile(values, [0.001, 0.999])]


def _rows(model, run_data, most):
    num_points = most or min(
        MAX_ROWS if has_encoder(model) else MAX_ROWS_WITHOUT_ENCODER, MAX_VALUES // run_data.test.shape[1]
    )
    num_test = min(len(run_data.test), max(num_points // 2 if len(run_data.train) else num_points, 1))
    num_train = min(len(run_data.train), max(num_points - num_test, 0))
    test, train = evenly(len(run_data.test), num_test), evenly(len(run_data.train), num_train)
    rows = np.concatenate([run_data.test[test], run_data.train[train]])
    if run_data.test_given is not None:
        given = np.concatenate([run_data.test_given[test], run_data.train_given[train]])
        rows = rows_given(model, rows, given, np.arange(len(rows)))
    labels = None
    if run_data.test_labels is not None and run_data.train_labels is not None:
        labels = np.concatenate([run_data.test_labels[test], run_data.train_labels[train]])
    return rows, labels, num_test


def _compact(model, rows):
    """Return rows in few bytes: grey levels unchanged, zeros and ones as bytes, values in [0, 1] in half precision."""
    if rows.dtype == np.uint8 or np.isin(rows, (0, 1)).all():
        return rows.astype(np.uint8)
    return as_half(rows) if LIKELIHOODS[model.likelihood].unit_interval else rows.astype(np.float32)


def _typical_bound(model, rows):
    """Return the median bound of the rows; None for full VB, whose bound averages over weights (the page has means)."""
    if not has_encoder(model) or model.learner.has_weight_posterior:
        return None
    return float(np.median(likelihoods.lower_bound_terms(model, rows, 10).lower_bound))


def _labels(labels):
    """Return a description of the labels, and a number for each row: the index of its class, or the quantity."""
    kind = label_kind(labels)
    if kind == "classes":
        classes, numbers = np.unique(labels, return_inverse=True)
        return {"kind": kind, "names": [str(name) for name in classes]}, numbers.astype(np.uint16)
    if kind == "quantity":
        return {"kind": kind, "range": [float(np.nanmin(labels)), float(np.nanmax(labels))]}, labels.astype(np.float32)
    return None, None  # none, or too many names to tell apart
