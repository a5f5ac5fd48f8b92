"""The families that numpyro lacks, against SciPy: moments, CDF, quantiles and support."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from aevb import distributions as dist

CASES = {
    "Rayleigh": (dist.Rayleigh(np.array([1.0, 30.0])), stats.rayleigh(scale=[1.0, 30.0])),
    "Reciprocal": (
        dist.Reciprocal(np.array([0.5, 1e-3]), np.array([3.0, 1e3])),
        stats.reciprocal([0.5, 1e-3], [3, 1e3]),
    ),
    "Erlang": (dist.Erlang(np.array([3, 1]), np.array([2.0, 50.0])), stats.erlang([3, 1], scale=[0.5, 0.02])),
    "Triangular": (
        dist.Triangular(np.array([-1.0, 0.0, 0.0]), np.array([0.5, 0.0, 2.0]), np.array([2.0, 1.0, 2.0])),
        stats.triang([0.5, 0.0, 1.0], [-1.0, 0.0, 0.0], [3.0, 1.0, 2.0]),  # the last two with the mode at an end
    ),
    "FisherSnedecor": (
        dist.FisherSnedecor(np.array([5.0, 0.5, 2.0, 3.0]), np.array([7.0, 9.0, 3.0, 1.5])),
        stats.f([5.0, 0.5, 2.0, 3.0], [7.0, 9.0, 3.0, 1.5]),
    ),
}
each_case = pytest.mark.parametrize(("q", "reference"), CASES.values(), ids=CASES)
PROBABILITIES = np.array([1e-6, 0.1, 0.5, 0.9, 1 - 1e-6])[:, None]


@pytest.mark.float64
@each_case
def test_moments(q, reference):
    mean, variance = jax.jit(lambda q: (q.mean, q.variance))(q)
    np.testing.assert_allclose(mean, reference.mean(), rtol=1e-12)
    # An F distribution whose mean is infinite has no variance.
    np.testing.assert_allclose(variance, np.where(np.isinf(mean), np.nan, reference.var()), rtol=1e-9)


@pytest.mark.float64
@each_case
def test_cdf_and_quantiles(q, reference):
    z = reference.ppf(PROBABILITIES)
    low, high = reference.support()
    high = np.minimum(high, 1e30)
    ends = [np.broadcast_to(end, z.shape[1:]) for end in (low - 1, low, high, high + 1)]
    probabilities, quantiles = jax.jit(lambda q, z: (q.cdf(z), q.icdf(PROBABILITIES)))(q, np.stack([*z, *ends]))
    np.testing.assert_allclose(probabilities[:-4], PROBABILITIES + np.zeros_like(z), rtol=1e-8)
    np.testing.assert_array_equal(probabilities[-4:-2], 0)
    np.testing.assert_allclose(probabilities[-2:], 1, rtol=1e-15)
    assert np.max(probabilities) <= 1
    np.testing.assert_allclose(quantiles, z, rtol=1e-8)


@each_case
def test_support(q, reference):
    low, high = reference.support()
    assert np.all(q.support(reference.ppf(0.5)))
    assert not np.any(q.support(low - 1))
    assert not np.any(np.isfinite(high) & q.support(high + 1))
    assert not q.support.is_discrete


@pytest.mark.thorough
@each_case
def test_sample_is_in_the_support_and_is_differentiable(q, reference):
    """numpyro's own `sample` works too, and agrees with `reparameterize` for the same key."""
    key, sample_shape = jax.random.key(0), (100,)

    @jax.jit
    def draw(q):
        noise, transform = dist.reparameterize(q)
        expected = transform(noise.sample(key, sample_shape))
        z, pull_back = jax.vjp(lambda q: q.sample(key, sample_shape), q)
        return z, expected, pull_back(jnp.ones_like(z))[0]

    z, expected, gradient = draw(q)
    assert z.shape == sample_shape + q.batch_shape
    assert np.all(q.support(z))
    np.testing.assert_allclose(z, expected, rtol=1e-5)
    for name in q.reparametrized_params:
        assert np.all(getattr(gradient, name) != 0)


def test_parameters_broadcast():
    q = dist.Triangular(jnp.zeros((3, 1)), 0.5, jnp.ones(2))
    assert q.batch_shape == (3, 2)
    assert jax.eval_shape(lambda key: q.sample(key, (5,)), jax.random.key(0)).shape == (5, 3, 2)


def test_triangular_density_at_the_mode():
    q, reference = CASES["Triangular"]
    np.testing.assert_allclose(q.log_prob(q.mode), reference.logpdf(q.mode), rtol=1e-6)


@pytest.mark.parametrize(("family", "parameters"), [(dist.Erlang, (2.5, 1.0)), (dist.Rayleigh, (-1.0,))])
def test_bad_parameters_are_rejected(family, parameters):
    with pytest.raises(ValueError, match="got invalid"):
        family(*parameters, validate_args=True)
