"""Apply functions of single datapoints to many, in batches of one shape."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import numpy as np
from jax import Array

from aevb.arrays import fingerprint
from aevb.estimators import Terms, with_terms
from aevb.models import join, split
from aevb.training.source import Source

BATCH = 256  # every call is padded to this many rows: one compiled program, and results independent of the other rows


def rowwise(function: Callable, model, source: Source, rows: np.ndarray, *arguments) -> Any:
    """Return ``function(model, x, *arguments)`` for each of the given rows of the source, stacked.

    The function is compiled once per model structure; it should be a module-level function, so that the compiled
    program is reused.
    """
    parameters, constants, skeleton = split(model)
    run = partial(_run_batch, function=function, skeleton=skeleton)
    stored = jax.tree.map(np.asarray, source.rows)
    results = []
    for start in range(0, len(rows), BATCH):
        numbers = np.resize(rows[start : start + BATCH], BATCH)  # the last batch repeats rows to fill up
        # The program sees only a batch: with the whole source, there would be one program for each N.
        batch = Source(jax.tree.map(lambda array: array[numbers], stored), source.conversion)  # noqa: B023
        results.append(run((parameters, constants), batch, arguments))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[: len(rows)], *results)


@partial(jax.jit, static_argnames=("function", "skeleton"))
def _run_batch(arrays, batch, arguments, *, function, skeleton):
    parameters, constants = arrays
    model = join(parameters, constants, skeleton)
    return jax.vmap(lambda x: function(model, x, *arguments))(batch.read(slice(None)))


def lower_bounds(
    generative, recognition, source: Source, rows: np.ndarray, key: Array, estimator: Callable, num_samples: int = 1
) -> np.ndarray:
    """Return the estimated lower bound of each row, in nats; see :func:`bound_terms`."""
    terms = bound_terms(generative, recognition, source, rows, key, estimator, num_samples)
    return np.asarray(terms.lower_bound)


def bound_terms(
    generative, recognition, source: Source, rows: np.ndarray, key: Array, estimator: Callable, num_samples: int = 1
) -> Terms:
    """Return the estimated lower bound of each row, and the bound's two terms, in nats.

    The noise is a function of the key and of the datapoint itself: a value does not depend on the order of the rows or
    on the other rows.
    """
    terms_of_row = _terms_of_row(estimator, num_samples)
    return rowwise(terms_of_row, (generative, recognition), source, rows, key)


@cache  # the same function for the same arguments, so that its compiled program is reused
def _terms_of_row(estimator, num_samples):
    def terms_of_row(models, x, key):
        generative, recognition = models
        noise = recognition.noise(x).sample(jax.random.fold_in(key, fingerprint(x)), (num_samples,))
        return with_terms(estimator)(generative, recognition, x, noise)

    return terms_of_row
