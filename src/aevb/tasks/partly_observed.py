"""Bounds and posteriors of rows with missing values (NaN), given the observed ones.

Paper: §2.1.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import Array

from aevb.estimators import Terms, with_terms
from aevb.learners.unamortized import OptimizedEncoder, StartingPosterior
from aevb.models import GenerativeModel, RecognitionModel, is_sparse
from aevb.models.compilation import compiled
from aevb.tasks.conditional import in_batches
from aevb.tasks.observations import Missing
from aevb.tasks.observed_models import observed_models

NUM_STEPS = 400  # of the optimization of a row's q(z)


def rows_with_holes(X: np.ndarray) -> np.ndarray:
    """Return which rows of X (n, D) contain NaN, (n,)."""
    if is_sparse(X) or not np.issubdtype(X.dtype, np.floating):
        return np.zeros(X.shape[0], bool)
    return np.any(np.isnan(X), axis=1)


def by_completeness(X: np.ndarray, complete: Callable[[Any], Any], incomplete: Callable[[Any], Any]) -> Any:
    """Apply one function to the complete rows of X and another to those with NaN; return the results in row order.

    Args:
        X: (n, D).
        complete: Function of rows without NaN; it returns a pytree of arrays with one entry per row.
        incomplete: The same for rows with NaN.
    """
    has_holes = rows_with_holes(X)
    if not has_holes.any():
        return complete(X)
    if has_holes.all():
        return incomplete(X)
    places = np.argsort(np.argsort(has_holes, kind="stable"), kind="stable")  # of each row after the complete ones
    parts = complete(X[~has_holes]), incomplete(X[has_holes])
    return jax.tree.map(lambda *arrays: np.concatenate(arrays)[places], *parts)


def given_observed(
    generative: GenerativeModel, recognition: RecognitionModel | None, family: tuple[str, int] | None, bound: Callable
) -> tuple[GenerativeModel, Any]:
    r"""Return p(z) p(x_observed|z) and q(z|x_observed) for one row with NaN where it was not observed.

    .. math:: q(z | x_o) = \arg\max_{q \in Q} E_q[\log p(x_o | z)] - D_{KL}(q \| p(z))

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x), or None.
        family: Q, a key of :data:`aevb.models.POSTERIORS`, and J; q is found by gradient ascent on the row's own
            bound. None for a user-defined encoder: q is then the encoder at a guess of the missing values.
        bound: Estimator of the bound to maximize.
    """
    observed, guess = observed_models((generative, recognition), Missing())
    if family is None or recognition is None:
        return observed, guess
    return observed, RecognitionModel(OptimizedEncoder(observed, StartingPosterior(*family), bound, NUM_STEPS))


def observed_bound_terms(models, x: np.ndarray, key: Array, bound: Callable, num_samples: int, progress=None) -> Terms:
    """Return lower bounds on log p(x_observed) and their two terms, each (n,).

    Args:
        models: What :func:`given_observed` returns.
        x: (n, D) with NaN.
        key: Random key; each row's own key is a function of it and of the row.
        bound: Estimator of the bound.
        num_samples: L.
        progress: See :func:`aevb.tasks.conditional.in_batches`.
    """

    def of_batch(x, keys):
        return _bound_terms(models, x, keys, bound=bound, num_samples=num_samples)

    return in_batches(of_batch, x, key, progress)


def observed_posterior(models, x: np.ndarray, key: Array, progress=None) -> Any:
    """Return q(z|x_observed) for all rows (n, D), as the pytree of arrays of a distribution."""
    return in_batches(lambda x, keys: _posteriors(models[1], x), x, key, progress)


@compiled("bound", "num_samples")
def _bound_terms(models, x, keys, *, bound, num_samples):
    generative, recognition = models

    def of_row(x, key):
        return with_terms(bound)(generative, recognition, x, recognition.noise(x).sample(key, (num_samples,)))

    return jax.vmap(of_row)(x, keys)


@compiled()
def _posteriors(recognition, x):
    return jax.vmap(recognition)(x)
