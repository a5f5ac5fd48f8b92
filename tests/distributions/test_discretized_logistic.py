import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aevb.distributions import DiscretizedLogistics
from aevb.models import FAMILIES

LEVELS = np.arange(256)[:, None] / 255


def drawn(scale, num_variables=6):
    """Return a member of the family at random outputs of a network."""
    family = FAMILIES["discretized-logistic"]
    outputs = scale * np.random.default_rng(0).normal(size=family.num_outputs(num_variables))
    return family.at(jnp.asarray(outputs), num_variables).base_dist


@pytest.mark.float64
@pytest.mark.thorough
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_256_levels_sum_to_one_with_the_right_moments(scale):
    p = drawn(scale)
    probabilities = np.exp(p.log_prob(LEVELS * np.ones(6)))
    np.testing.assert_allclose(probabilities.sum(axis=0), 1, atol=1e-13)
    mean = (probabilities * LEVELS).sum(axis=0)
    np.testing.assert_allclose(p.mean, mean, atol=0.5 / 255)  # half a level, as documented
    np.testing.assert_allclose(p.variance, (probabilities * LEVELS**2).sum(axis=0) - mean**2, atol=1e-12)


@pytest.mark.float64
@pytest.mark.thorough
def test_a_level_is_the_difference_of_two_distribution_functions():
    """Also where both are nearly 1: a difference of sigmoids would be 0 there."""
    p = DiscretizedLogistics(jnp.zeros((1, 3)), jnp.array([[0.5, 0.1, -0.4]]), jnp.log(jnp.array([[0.1, 0.05, 0.02]])))
    loc, scale, x = np.array([0.5, 0.1, -0.4]), np.array([0.1, 0.05, 0.02]), np.array([100, 200, 250]) / 255
    upper, lower = (x + 1 / 510 - loc) / scale, (x - 1 / 510 - loc) / scale
    expected = np.log(np.expm1(upper - lower)) + lower - np.logaddexp(0, upper) - np.logaddexp(0, lower)
    np.testing.assert_allclose(p.log_prob(x), expected, rtol=1e-10)
    assert np.all(np.isfinite(jax.grad(lambda x: p.log_prob(x).sum())(jnp.asarray(x))))


@pytest.mark.thorough
def test_draws_are_levels_with_their_probabilities():
    """4,000 draws of six variables: five standard errors, a false alarm in 3e-6."""
    p = drawn(1.0)
    draws = np.asarray(p.sample(jax.random.key(0), (4000,)))
    assert np.allclose(draws * 255, np.round(draws * 255), atol=1e-3)
    assert np.all(np.abs(draws.mean(axis=0) - p.mean) < 5 * np.sqrt(np.asarray(p.variance) / 4000) + 0.5 / 255)
