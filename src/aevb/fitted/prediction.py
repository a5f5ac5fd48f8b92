"""Predict the targets of a conditional model: the values of a fitted model, given what they are conditioned on."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from aevb.fitted.coding import sample
from aevb.fitted.model import FittedModel, given_source
from aevb.models.generative import conditions
from aevb.training import Source, rowwise

NUM_MEAN_DRAWS = 500  # of z, for expectations
CHUNK = 50  # draws of z that are decoded at once
TRANSFORMED = ("lognormal", "bounded")  # families whose mean is not that of the stored numbers


def predictive_mean(model: FittedModel, given: np.ndarray) -> np.ndarray:
    r"""Return the expectation of the targets in the user's units, (n, T).

    .. math:: E[y|x] \approx \frac{1}{L} \sum_l E[y | x, z^{(l)}], \quad z^{(l)} \sim p(z|x)

    with L = 500. The noise is the same for all rows, so that a prediction does not depend on other rows. For
    "lognormal" and "bounded" targets, and those with few values, y is drawn too.

    Args:
        model: A model of a table of targets.
        given: (n, D'), stored numbers of what they are conditioned on.
    """
    means, drawn = _rows(model, _moments, given)
    columns = model.format.columns
    return np.stack(
        [
            _in_units(column, drawn[..., place]).mean(axis=1)
            if column.column.family in TRANSFORMED or column.levels
            else column.column.in_units(means[..., place])
            for place, column in enumerate(columns)
        ],
        axis=1,
    )


def predictive_quantiles(model: FittedModel, given: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Return quantiles of the targets in the user's units, (n, T, Q): those of 2,000 draws of y.

    Args:
        model: A model of a table of targets.
        given: (n, D'), stored numbers of what they are conditioned on.
        quantiles: (Q,), between 0 and 1.
    """
    stored = _rows(model, _quantiles, given, jnp.asarray(quantiles, jnp.float32))  # (n, Q, T); units are monotone
    return np.stack([_in_units(column, stored[..., t]) for t, column in enumerate(model.format.columns)], axis=1)


def predictive_draws(model: FittedModel, given: np.ndarray, num_draws: int, *, random_state: Any = None) -> np.ndarray:
    """Draw targets in the user's units, (num_draws, n, T)."""
    stored = sample(model, num_draws * len(given), given=np.tile(given, (num_draws, 1)), random_state=random_state)
    return in_units(model, stored).reshape(num_draws, len(given), -1)


def in_units(model: FittedModel, stored: np.ndarray) -> np.ndarray:
    """Return stored numbers of targets in the user's units, (n, T), NaN where they are."""
    values, columns = np.asarray(stored, np.float64), model.format.columns
    return np.stack([_in_units(column, values[:, place]) for place, column in enumerate(columns)], axis=1)


def _in_units(column, stored):
    """Return stored numbers of one target in the user's units; those of a few values are their places in order."""
    if not column.levels:
        return column.column.in_units(stored)
    places = np.clip(np.nan_to_num(np.rint(stored)), 0, len(column.levels) - 1).astype(int)
    return np.where(np.isnan(stored), np.nan, np.asarray(column.levels, np.float64)[places])


def _rows(model, function, given, *arguments):
    source = given_source(Source(np.zeros((len(given), 1), np.float32)), model.given, given)
    found = rowwise(function, model.generative, source, np.arange(len(given)), model.key(), *arguments)
    return jax.tree.map(lambda values: np.asarray(values, np.float64), found)


def _moments(generative, x, key):
    """Return the mean of the stored targets, (T,), and draws of them, (L, T)."""
    means, draws = _draws(generative, x, key, NUM_MEAN_DRAWS)
    return jnp.mean(means, axis=0), draws


def _quantiles(generative, x, key, quantiles):
    _, draws = _draws(generative, x, key, 4 * NUM_MEAN_DRAWS)
    return jnp.quantile(draws, quantiles, axis=0)


def _draws(generative, x, key, num):
    """Return the means of p(y|x, z) at draws of z, and draws of y, each (num, T)."""
    prior = generative.latent_distribution(x)

    def of_chunk(key):
        key_z, key_y = jax.random.split(key)
        z = prior.sample(key_z, (CHUNK,))
        return jax.vmap(lambda z, key: _one(generative.decoder(z, *conditions(x)), key))(
            z, jax.random.split(key_y, CHUNK)
        )

    found = lax.map(of_chunk, jax.random.split(key, num // CHUNK))
    return jax.tree.map(lambda values: values.reshape(-1, values.shape[-1]), found)


def _one(p, key):
    return p.mean, p.sample(key)
