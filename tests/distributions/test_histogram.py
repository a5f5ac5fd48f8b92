"""Numbers in cells: densities, draws, moments and positions, against sums over the cells."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from aevb.distributions import Histogram, from_positions
from aevb.models.cells import find_cells, from_cells, log_density, shares, to_cells

pytestmark = pytest.mark.thorough

EDGES = ((-1.0, -0.5, 2.0, 2.5), (0.0, 0.25))
LOGITS = np.array([[-2.0, 0.3, 1.0, 0.1, -1.0], [-1.0, 2.0, 0.5, 9.0, 9.0]])  # the last two of the second are padding


@pytest.mark.float64
def test_the_density_of_numbers_integrates_to_one_and_has_the_stated_moments():
    p, to_numbers = Histogram(LOGITS, EDGES), from_positions(EDGES)

    @jax.jit
    def log_densities(x):
        u = to_numbers.inv(x)
        return p.log_prob(u) - to_numbers.log_abs_det_jacobian(u, x)

    for place, edges in enumerate(EDGES):

        def density(x, power, place=place):
            return x**power * float(jnp.exp(log_densities(np.full(2, x))[place]))

        knots = [-40, *edges, 40]
        pieces = list(pairwise(knots))
        moments = [sum(quad(density, *ends, args=(power,))[0] for ends in pieces) for power in range(3)]
        np.testing.assert_allclose(moments[0], 1, rtol=1e-7)
        np.testing.assert_allclose(p.expectation[place], moments[1], rtol=1e-6)
        np.testing.assert_allclose(p.variance[place], moments[2] - moments[1] ** 2, rtol=1e-6)
    np.testing.assert_allclose(to_numbers(p.mean), p.expectation)


@pytest.mark.thorough
def test_draws_follow_the_distribution():
    """Kolmogorov-Smirnov at a false-alarm rate of 1e-4, of numbers whose distribution is continuous."""
    p = Histogram(LOGITS.astype(np.float32), EDGES)
    draws = np.asarray(jax.jit(lambda key: from_positions(EDGES)(p.sample(key, (20_000,))))(jax.random.key(0)))
    for column, edges, probabilities in zip(draws.T, EDGES, np.asarray(p.probabilities), strict=True):
        known = np.cumsum(probabilities)[: len(edges)]

        def cdf(x, edges=edges, known=known):
            below, above = known[0] * np.exp(x - edges[0]), 1 - (1 - known[-1]) * np.exp(edges[-1] - x)
            inside = np.interp(x, edges, known)
            return np.where(x < edges[0], below, np.where(x > edges[-1], above, inside))

        assert stats.kstest(column, cdf).pvalue > 1e-4


@pytest.mark.float64
def test_positions_in_numpy_are_those_of_the_transformation():
    x = np.array([-7.0, -1.0, -0.6, 0.0, 2.2, 2.5, 30.0])
    loc, scale = 0.5, 2.0
    edges = tuple((edge - loc) / scale for edge in EDGES[0])

    u = to_cells(x, EDGES[0], scale)

    np.testing.assert_allclose(from_cells(u, EDGES[0], scale), x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        from_positions((edges,)).inv(((x - loc) / scale)[:, None])[:, 0], u, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(from_positions((edges,))(u[:, None])[:, 0] * scale + loc, x, rtol=1e-12, atol=1e-12)
    probabilities = np.exp(LOGITS[0]) / np.exp(LOGITS[0]).sum()
    p, to_numbers = Histogram(LOGITS[:1], (edges,)), from_positions((edges,))
    found = p.log_prob(u[:, None]) - to_numbers.log_abs_det_jacobian(u[:, None], None) - np.log(scale)
    np.testing.assert_allclose(found[:, 0], log_density(x, EDGES[0], probabilities, scale), rtol=1e-9)


def test_gradients_are_finite_where_levels_are_padded():
    gradient = jax.grad(lambda logits: jnp.sum(Histogram(logits, EDGES).log_prob(jnp.array([9.0, -3.0]))))(LOGITS)

    assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(gradient[1, 3:], 0)


def test_frequent_values_have_cells_of_their_own_and_no_entry_is_outside():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(5000) < 0.3, 0.0, np.where(rng.random(5000) < 0.1, 12.5, rng.lognormal(3, 1, 5000)))

    cells = find_cells(x)

    assert cells.frequent == (0.0, 12.5)
    assert (np.diff(cells.edges) > 0).all()
    found = shares(x, cells.edges) * (5000 + 0.5 * (len(cells.edges) + 1)) - 0.5
    np.testing.assert_allclose(found[[0, -1]], 0, atol=1e-9)
    assert (found[np.searchsorted(cells.edges, cells.frequent)].round() == [(x == 0).sum(), (x == 12.5).sum()]).all()
    assert len(cells.edges) < 60
