"""Infer x from part of it, or from a noisy or small x, with a fitted model."""

import math
from typing import Any

import numpy as np

from aevb import tasks
from aevb.errors import shown
from aevb.fitted import imputation
from aevb.fitted.coding import reconstruct, sample
from aevb.fitted.model import FittedModel, covariates_of
from aevb.models import LIKELIHOODS, Datapoint
from aevb.tasks.conditional import Completion
from aevb.tasks.levels import dispersion, of_levels
from aevb.tasks.restoration import check_level
from aevb.training import Source
from aevb.training.progress import ShareDone

NUM_MEASURED = 128  # rows whose grey levels are compared with the decoder's means


def impute(model: FittedModel, X: Any, *, random_state: Any = None, progress: bool = False, **options):
    """Fill in the missing values (NaN) of X (n, D); the observed ones stay as they are.

    Args:
        model: The model.
        X: The rows, or a datapoint of them and of what they are conditioned on.
        random_state: As in scikit-learn; None for the model's own.
        progress: Whether to show a progress bar.
        options: How z is sampled, and ``num_draws``; see :func:`aevb.tasks.complete`.

    Returns:
        :class:`aevb.tasks.Completion`.
    """
    X, _, given = Datapoint.of(X)
    reader = covariates_of(model.given)
    features = None if reader is None else reader(given, np)[0]  # what networks read of it
    if model.is_table:
        rows = X if features is None else Datapoint(X, given=features)
        return imputation.impute(model, rows, random_state=random_state, progress=progress, **options)
    is_missing, dtype = np.isnan(X), result_type(model, X)
    with ShareDone(progress, "imputing") as bar:
        x, key = Datapoint(X, given=features).with_values(model.format.store(X)[0]), model.key(random_state)
        found = tasks.impute(model.generative, model.encoder, x, key, progress=bar.update, **options)

    def finished(values):
        return np.where(is_missing, model.format.restore(values), X).astype(dtype)

    return Completion(finished(found.mean), found.std, finished(found.draws))


def denoise(
    model: FittedModel, X: np.ndarray, noise: str, level: Any, *, random_state: Any = None, progress=False, **options
):
    """Return the posterior expectation of the clean rows, given noisy ones; see :meth:`aevb.VAE.denoise`."""
    check_level(noise, level, X.shape[1])
    dtype, X = result_type(model, X), model.format.store(X)[0]
    low, high = -np.inf, np.inf
    if LIKELIHOODS[model.likelihood].unit_interval:
        low, high = 0.0, 1.0
    else:
        options["values"] = float(X.min()), float(X.max())
        options["scale"] = _spread(model) if level is None else 1.0
    options |= {"noise": noise, "level": level}
    with ShareDone(progress, "denoising") as bar:
        models, key = _models_of_levels(model), model.key(random_state)
        found = tasks.denoise(*models, X, key, progress=bar.update, **options)

    def finished(values):
        return np.clip(model.format.restore(values), low, high).astype(dtype)

    return Completion(finished(found.mean), found.std, finished(found.draws))


def super_resolve(
    model: FittedModel, X: np.ndarray, factor: int, image_shape, *, random_state: Any = None, progress=False, **options
):
    """Return the posterior expectation of images, given small ones; see :meth:`aevb.VAE.super_resolve`."""
    if model.matrix.offset is not None:
        raise ValueError("super_resolve: needs images, but columns of this model are far from 0 (see offset_).")
    if options.get("noise_std") is None:
        options["noise_std"] = max(0.02 * float(np.ptp(X)), 1e-6)
    options |= {"factor": factor, "image_shape": _checked_shape(model, image_shape)}
    with ShareDone(progress, "resolving") as bar:
        models, key = _models_of_levels(model), model.key(random_state)
        found = tasks.super_resolve(*models, X, key, progress=bar.update, **options)
    dtype = result_type(model, X)
    return Completion(found.mean.astype(dtype), found.std, found.draws.astype(dtype))


def _models_of_levels(model):
    """Return the models; of grey levels if a Bernoulli decoder was trained on them."""
    is_grey = model.likelihood == "bernoulli" and model.dispersion < 1
    return of_levels(model.generative, model.dispersion) if is_grey else model.generative, model.encoder


def _spread(model):
    """Return the standard deviation of the model's draws, per column, or overall if they share one unit."""
    std = np.asarray(sample(model, 256)).std(axis=0)
    return std if model.units is None or model.has_column_units else float(np.sqrt(np.mean(std**2)))


def _checked_shape(model, image_shape):
    image_shape = model.matrix.image_shape if image_shape is None else image_shape
    if image_shape is not None:
        shape = np.ravel(np.asarray(image_shape, dtype=object)).tolist()
        are_sides = all(isinstance(side, int | np.integer) and side > 0 for side in shape)
        if not are_sides or len(shape) not in (2, 3) or math.prod(shape) != model.matrix.num_columns:
            raise ValueError(
                f"image_shape={shown(image_shape)}: expected (height, width) or (height, width, channels) "
                f"with {model.matrix.num_columns} values in all."
            )
        return tuple(map(int, shape))
    if model.has_column_units:
        raise ValueError(
            "image_shape: the columns of this model have different units, so its rows are not known to be images. "
            "If they are, give image_shape=(height, width)."
        )
    side = int(np.sqrt(model.matrix.num_columns))
    if side**2 != model.matrix.num_columns:
        raise ValueError(f"image_shape: {model.matrix.num_columns} pixels do not form a square. Give (height, width).")
    return side, side


def result_type(model: FittedModel, X: np.ndarray) -> np.dtype:
    """Return float64 for float64 rows, and for columns that float32 has too few digits for; else float32."""
    is_far = model.matrix.offset is not None
    return np.dtype(np.float64 if X.dtype == np.float64 or is_far else np.float32)


def measured_dispersion(model: FittedModel, source: Source, rows: np.ndarray) -> float:
    """Return the dispersion of grey levels about the decoder's means; 1 if x is not a grey level."""
    if model.likelihood != "bernoulli" or source.conversion.is_dynamic or model.given is not None:
        return 1.0
    x = np.asarray(source.take(rows[np.linspace(0, len(rows) - 1, min(len(rows), NUM_MEASURED), dtype=int)]))
    if np.isin(x, (0, 1)).all():
        return 1.0
    return dispersion(x, reconstruct(model, x))
