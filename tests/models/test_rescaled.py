"""Standardized columns of any location-scale family are in the units of the data outside."""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

from aevb.models.conditionals import rescaled

LOC, SCALE = np.array([10.0, -3.0]), np.array([2.0, 0.5])


@pytest.mark.float64
@pytest.mark.parametrize(
    "base",
    [
        dist.Laplace(np.zeros(2), np.ones(2)),
        dist.Logistic(np.ones(2), np.ones(2)),
        dist.StudentT(5.0, np.zeros(2), np.ones(2)),
        dist.Normal(np.zeros(2), np.ones(2)),
    ],
)
def test_densities_change_with_the_units(base):
    """p(x) = p(u) / scale at u = (x - loc) / scale."""
    p, x = base.to_event(1), np.array([11.0, -2.5])
    expected = p.log_prob((x - LOC) / SCALE) - np.log(SCALE).sum()
    np.testing.assert_allclose(rescaled(p, LOC, SCALE).log_prob(x), expected, rtol=1e-12)
    draws = rescaled(p, LOC, SCALE).sample(jax.random.key(0), (10,))
    np.testing.assert_allclose(draws, LOC + SCALE * p.sample(jax.random.key(0), (10,)), rtol=1e-12)


def test_a_family_without_location_and_scale_is_refused():
    with pytest.raises(TypeError, match="Poisson has no loc and scale"):
        rescaled(dist.Poisson(np.ones(2)).to_event(1), LOC, SCALE)
