"""What missing entries are filled in with, against quadrature over z."""

from operator import itemgetter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aevb.fitted.imputation import _complete
from aevb.models import BayesianGenerativeModel, Column, Datapoint, table_models
from aevb.networks import initialize

COLUMNS = (
    Column("a", "gaussian", 40.0, 10.0),
    Column("b", "lognormal", 1.0, 0.5),
    Column("c", "ordinal", num_levels=4),
    Column("d", "categorical", num_levels=3),
)
ROWS = np.array([[0.8, np.nan, 2.0, np.nan], [np.nan, -1.0, np.nan, 2.0]], np.float32)
NUM_SAMPLES = 20_000
GRID = np.linspace(-8, 8, 4001, dtype=np.float32)[:, None]


def models(is_bayesian):
    generative, recognition = table_models(COLUMNS, 1, (5,))
    generative, recognition = jax.tree.map(
        lambda leaf: 1.5 * leaf, initialize((generative, recognition), jax.random.key(2), "glorot")
    )
    if is_bayesian:
        generative = BayesianGenerativeModel(generative, num_draws=3)
        wide = jax.tree.map(lambda leaf: jnp.full_like(leaf, -1.0), generative.log_variance)
        generative = eqx.tree_at(lambda model: model.log_variance, generative, wide)
    return generative, recognition


def members(generative):
    if not isinstance(generative, BayesianGenerativeModel):
        return [generative]
    stacked = generative.draws()
    return [jax.tree.map(itemgetter(number), stacked) for number in range(generative.num_draws)]


def by_quadrature(generative, y):
    """Return the statistics of a row given its observed entries, with the weights integrated over too."""
    x = Datapoint(jnp.nan_to_num(y), ~jnp.isnan(y))
    weights, statistics = [], []
    for member in members(generative):
        log_joint = jax.vmap(lambda z, member=member: member.log_joint(x, z))(GRID)
        weights.append(np.exp(np.asarray(log_joint, np.float64)))
        statistics.append(np.asarray(jax.vmap(lambda z, member=member: member.decoder(z).statistics())(GRID)))
    weights = np.concatenate(weights)
    return weights @ np.concatenate(statistics) / weights.sum()


@pytest.mark.thorough
@pytest.mark.parametrize("is_bayesian", [False, True], ids=["weights", "posterior of weights"])
def test_filled_in_entries_are_the_best_guess_of_the_posterior(is_bayesian):
    """20,000 draws: standard errors are below 0.01, so that a tolerance of 0.06 is exceeded once in 10^8 times."""
    generative, recognition = models(is_bayesian)
    options = {"num_samples": NUM_SAMPLES, "num_draws": 0, "encodes_missing": True}
    guess, _, _ = _complete((generative, recognition), ROWS, jax.random.split(jax.random.key(0), 2), **options)
    decoder = members(generative)[0].decoder
    for y, found in zip(ROWS, np.asarray(guess), strict=True):
        expected = decoder(jnp.zeros(1)).row_from_statistics(jnp.asarray(by_quadrature(generative, y)))
        np.testing.assert_allclose(found, expected, atol=0.06)


@pytest.mark.thorough
def test_draws_of_a_posterior_of_weights_have_the_moments_of_all_its_members():
    """2,000 draws of a standardized number: the standard error of the mean is below 0.03, five of them 0.15."""
    generative, recognition = models(is_bayesian=True)
    options = {"num_samples": NUM_SAMPLES, "num_draws": 2000, "encodes_missing": True}
    guess, std, draws = _complete((generative, recognition), ROWS, jax.random.split(jax.random.key(0), 2), **options)
    np.testing.assert_allclose(np.asarray(draws)[1, :, 0].mean(), guess[1, 0], atol=0.15)
    np.testing.assert_allclose(np.asarray(draws)[1, :, 0].std(), std[1, 0], rtol=0.15)
