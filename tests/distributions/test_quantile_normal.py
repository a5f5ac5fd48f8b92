"""Numbers by their normal scores: densities, masses of steps, draws and moments, against numerical integrals."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from aevb.distributions import QuantileNormal
from aevb.distributions.quantile_normal import log_interval
from aevb.models.cells import interpolate
from aevb.models.column import Column

pytestmark = pytest.mark.thorough

SCORES = ((-1.5, -0.5, 0.4, 1.2), (-0.3, 0.9))
EDGES = ((-1.0, -0.5, 2.0, 2.5), (0.0, 0.25))
STEPS = ((2,), ())  # the numbers from -0.5 to 2 of the first
LOC, SCALE = np.array([0.3, -0.4]), np.array([0.7, 1.3])


@pytest.mark.float64
def test_the_density_of_numbers_integrates_to_one_and_has_the_stated_moments():
    p = QuantileNormal(LOC, np.log(SCALE), SCORES, EDGES, STEPS)
    without_steps = QuantileNormal(LOC, np.log(SCALE), SCORES, EDGES, ((), ()))

    @jax.jit
    def log_densities(x):
        u = p.to_numbers.inv(x)
        return jnp.stack([of.log_prob(u) - p.to_numbers.log_abs_det_jacobian(u, x) for of in (p, without_steps)])

    for place, edges in enumerate(EDGES):

        def density(x, power, of, place=place):
            return x**power * float(jnp.exp(log_densities(np.full(2, x))[of, place]))

        pieces = list(pairwise([-20, *edges, 20]))
        masses = np.array([[quad(density, *ends, args=(0, of))[0] for ends in pieces] for of in (0, 1)])
        np.testing.assert_allclose(masses[0], masses[1], rtol=1e-7)  # a step has the probability of its interval
        moments = [sum(quad(density, *ends, args=(power, 1))[0] for ends in pieces) for power in range(3)]
        np.testing.assert_allclose(moments[0], 1, rtol=1e-7)
        np.testing.assert_allclose(p.expectation[place], moments[1], rtol=1e-6)
        np.testing.assert_allclose(p.variance[place], moments[2] - moments[1] ** 2, rtol=1e-6)
    np.testing.assert_allclose(p.to_numbers(p.mean), p.expectation)


def test_probabilities_of_intervals_are_exact_in_both_tails_and_their_gradients_finite():
    a = np.array([-30.0, -3.0, -0.01, 0.0, 0.5, 4.0, 25.0, -8.0, 2.0], np.float32)
    width = np.array([1.0, 0.1, 0.02, 3.0, 0.001, 0.5, 0.05, 30.0, 1e-5], np.float32)
    b = a + width
    exact = [
        stats.norm.logsf(low) + np.log1p(-np.exp(stats.norm.logsf(high) - stats.norm.logsf(low)))
        if low > 0
        else stats.norm.logcdf(high) + np.log1p(-np.exp(stats.norm.logcdf(low) - stats.norm.logcdf(high)))
        for low, high in zip(a.astype(float), b.astype(float), strict=True)
    ]

    np.testing.assert_allclose(jax.jit(log_interval)(a, b), exact, rtol=2e-4, atol=1e-6)
    gradients = jax.jit(jax.grad(lambda a, b: jnp.sum(log_interval(a, b)), argnums=(0, 1)))(a, b)
    assert np.isfinite(gradients).all()


def test_a_column_starts_with_its_own_distribution():
    """At N(0, 1), the probabilities of cells are their shares among the entries."""
    rng = np.random.default_rng(0)
    x = np.where(rng.uniform(size=3000) < 0.2, 0.0, np.exp(rng.normal(size=3000)).round(3))
    column = Column.of("income", "quantile-gaussian", x)
    p = QuantileNormal(jnp.zeros(1), jnp.zeros(1), (column.scores,), (column.edges,), (column.single_values,))
    u = column.stored(x)

    np.testing.assert_allclose(column.in_units(u), x, atol=1e-9)
    assert abs(stats.norm.cdf(column.scores[1]) - stats.norm.cdf(column.scores[0]) - np.mean(x == 0)) < 1e-3
    assert abs(p.expectation[0] - x.mean()) < 0.1 * x.std()
    inside = stats.norm.cdf(u[x > 0])  # uniform, as those of quantiles
    assert stats.kstest((inside - inside.min()) / np.ptp(inside), "uniform").pvalue > 1e-4
    assert Column.from_description(column.describe()) == column


def test_numpy_and_jax_agree_on_numbers_and_scores():
    x = np.array([-7.0, -1.0, -0.6, 0.0, 2.2, 2.5, 30.0])
    p = QuantileNormal(LOC[:1], np.log(SCALE[:1]), SCORES[:1], EDGES[:1], STEPS[:1])
    u = interpolate(x, EDGES[0], SCORES[0], 1.0)

    np.testing.assert_allclose(p.to_numbers.inv(x[:, None])[:, 0], u, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(p.to_numbers(u[:, None])[:, 0], x, rtol=1e-5, atol=1e-5)
