"""The mixture of Gaussians, against NumPyro's."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from aevb.distributions import GaussianMixture
from aevb.models import mixture_prior

RNG = np.random.default_rng(0)
LOG_WEIGHTS, LOC = RNG.normal(size=3), RNG.normal(size=(3, 2))
WHITENING = np.tril(RNG.normal(size=(3, 2, 2)), -1) + np.exp(RNG.normal(size=(3, 2)))[:, :, None] * np.eye(2)
OURS = GaussianMixture(LOG_WEIGHTS, LOC, WHITENING)
COMPONENTS = dist.MultivariateNormal(LOC, precision_matrix=np.swapaxes(WHITENING, 1, 2) @ WHITENING)
THEIRS = dist.MixtureSameFamily(dist.Categorical(logits=LOG_WEIGHTS), COMPONENTS)


@pytest.mark.thorough
def test_density_and_moments():
    z = RNG.normal(size=(7, 2))
    np.testing.assert_allclose(OURS.log_prob(z), THEIRS.log_prob(z), rtol=1e-4)
    np.testing.assert_allclose(OURS.mean, THEIRS.mean, rtol=1e-4)
    np.testing.assert_allclose(OURS.variance, THEIRS.variance, rtol=1e-4)


def test_draws_have_the_moments():
    """Means of 100,000 draws within five standard errors: a false alarm once in 10^6 runs, for two variables."""
    z = np.asarray(OURS.sample(jax.random.key(0), (100_000,)), np.float64)
    assert (abs(z.mean(0) - OURS.mean) < 5 * z.std(0) / np.sqrt(len(z))).all()
    squares = (z - z.mean(0)) ** 2
    assert (abs(squares.mean(0) - OURS.variance) < 5 * squares.std(0) / np.sqrt(len(z))).all()


@pytest.mark.thorough
def test_batches():
    stacked = GaussianMixture(*(jnp.stack([array, 2 * array]) for array in (LOG_WEIGHTS, LOC, WHITENING)))
    assert stacked.batch_shape == (2,)
    z = RNG.normal(size=(5, 1, 2))
    np.testing.assert_allclose(stacked.log_prob(z)[:, 0], OURS.log_prob(z[:, 0]), rtol=1e-4)
    assert stacked.sample(jax.random.key(0), (5,)).shape == (5, 2, 2)
    np.testing.assert_allclose(stacked.mean[0], OURS.mean, rtol=1e-4)


@pytest.mark.thorough
def test_a_mixture_without_data_starts_with_unit_covariance():
    np.testing.assert_allclose(mixture_prior(3, 5)().covariance, np.eye(3), atol=1e-5)
    assert np.ptp(np.asarray(mixture_prior(1)().loc)) > 0.5
