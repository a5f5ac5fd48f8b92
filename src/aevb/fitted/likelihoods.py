"""How good is a fitted model: lower bounds, log p(x), and comparisons with simple models."""

import warnings
from typing import Any, NamedTuple

import jax
import numpy as np

from aevb import tasks
from aevb.arguments import check_parameter
from aevb.arrays import num_rows, on_device
from aevb.estimators import Terms
from aevb.fitted.coding import models_given_observed
from aevb.fitted.model import FittedModel
from aevb.models import LIKELIHOODS, flattened, is_sparse
from aevb.training import bound_terms
from aevb.training.progress import ShareDone

SPARSE_BLOCK = 1000  # rows


class Ranking(NamedTuple):
    """Rows by how unlikely they are."""

    order: np.ndarray  # (n,): row indices, the most anomalous first
    scores: np.ndarray  # (n,): in the order of the rows, in nats; large for anomalous ones
    contributions: Any = None  # (n, D) if asked for: surprise of each entry, in nats; a frame if X was one


def lower_bound_terms(
    model: FittedModel, X: np.ndarray, num_samples: int | None = None, *, progress: bool = False
) -> Terms:
    """Return the lower bound of each row of X (n, D), and its two terms, in nats; NaN marks missing values.

    Args:
        model: The model, with an encoder.
        X: The rows.
        num_samples: L; None for the model's own.
        progress: Whether to show a progress bar where it takes long.
    """
    num_draws: int = model.num_samples if num_samples is None else num_samples
    check_parameter("num_samples", num_draws, kind=int, low=1)
    check_encoder(model, "score_samples", 'log_likelihood(X, method="hmc") estimates log p(x) itself')
    setting = model.key(), model.bound, num_draws

    def of_complete(X):
        return bound_terms(model.generative, model.recognition, model.source(X), np.arange(num_rows(X)), *setting)

    def of_observed(X):
        with ShareDone(progress, "finding q(z | observed values)") as bar:
            models, x = models_given_observed(model, model.recognition), model.format.store(X)[0]
            return tasks.observed_bound_terms(models, x, *setting, progress=bar.update)

    return model.by_completeness(X, of_complete, of_observed)


def check_encoder(model: FittedModel, requested: str, instead: str) -> None:
    """Refuse what needs q(z|x) of a model that has none."""
    if model.recognition is None:
        raise ValueError(f"{requested}: needs q(z|x), but the model has no encoder; {instead}.")


def log_likelihood(
    model: FittedModel,
    X: Any,
    *,
    method: str = "importance",
    num_samples: int = 1000,
    random_state: Any = None,
    progress: bool = False,
    options: dict[str, Any] | None = None,
):
    """Estimate log p(x) of each row of X (n, D), or log p(observed values) where some are missing (NaN).

    Args:
        model: The model.
        X: The rows.
        method: See :meth:`aevb.VAE.log_likelihood`.
        num_samples: Samples of z per row; temperatures for ``"ais"``.
        random_state: As in scikit-learn; None for the model's own.
        progress: Whether to show a progress bar where it takes long.
        options: Options of the method.

    Returns:
        :class:`aevb.inference.result.LogLikelihood`.
    """
    from aevb.inference.marginal_likelihood import check_arguments, combined, log_likelihood

    options = dict(options or {})
    if method == "importance":
        check_encoder(model, 'method="importance"', 'use method="laplace" or "ais"')
    recognition = model.encoder if method == "laplace" else model.recognition
    models = model.generative, recognition
    first = jax.tree.map(lambda array: array[0], model.source(_some(X, slice(1))).take(np.arange(1)))
    check_arguments(*flattened(*models, first), method, num_samples, options, first)  # before anything is compiled
    key = model.key(random_state)
    takes_long = method == "ais" and "progress" not in options
    with ShareDone(progress and takes_long, "annealing") as bar:
        if takes_long:
            options["progress"] = bar.update

        def estimate_of(models, X):
            generative, recognition = models
            x = jax.tree.map(on_device, model.source(X).take(np.arange(num_rows(X))))  # as checked rows
            return log_likelihood(generative, recognition, x, key, method, num_samples, **options)

        has_holes = model.with_holes(X)
        parts = [(block, models) for block in _blocks(X, ~has_holes)]
        if has_holes.any():
            # Starting points of chains and optimizers need no search for the best q.
            parts += [(has_holes, models_given_observed(model, recognition, searches=method == "importance"))]
        found = [(rows, estimate_of(models, _some(X, rows))) for rows, models in parts if rows.any()]
        estimate = combined(model.generative, found, num_samples, first)
    for reason in estimate.warnings:
        warnings.warn(reason, UserWarning, stacklevel=3)
    return estimate


def _blocks(X, rows):
    """Yield the rows to be estimated together: sparse ones, which are made dense, a thousand at a time."""
    numbers = np.flatnonzero(rows)
    size = SPARSE_BLOCK if is_sparse(X) else max(len(numbers), 1)
    for start in range(0, len(numbers), size):
        block = np.zeros_like(rows)
        block[numbers[start : start + size]] = True
        yield block


def _some(X, rows):
    return jax.tree.map(lambda array: array[rows], X)


def compare(model: FittedModel, train: np.ndarray, test: np.ndarray, *, method: str, num_samples: int):
    """Compare log p(x) of test rows with that of simple models fitted to the training rows; see `VAE.compare`."""
    from aevb.inference.baselines import Comparison, fit_baselines, is_comparable

    if model.is_table or not LIKELIHOODS[model.likelihood].density or model.arguments.decoder is not None:
        raise ValueError(f"compare: needs a Gaussian likelihood, but this model has {model.likelihood!r}.")
    levels, rows = (X * model.matrix.scale_of(X) for X in (train, test))
    if not is_comparable(levels):
        raise ValueError(
            f"train: has shape {train.shape}; compare needs at least 10 rows, at most 100 columns and a million "
            "values, without NaN or constant columns."
        )
    own = log_likelihood(model, test, method=method, num_samples=num_samples).values
    others = fit_baselines(levels, rows, num_factors=model.latent_dim)
    return Comparison({"this model": own, **others.values}, {"this model": "", **others.details})


def ranking(log_probs: np.ndarray) -> Ranking:
    """Rank rows by their log p(x) or its bound, (n,): the most unlikely first."""
    scores = 0.0 - log_probs  # 0.0, not -0.0
    return Ranking(np.argsort(-scores, kind="stable"), scores)
