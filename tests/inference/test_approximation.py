"""A q that is written and read: its density, compared with that of its draws; seeds are fixed."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.distributions import constraints

from aevb.inference.approximation import Approximation
from aevb.models import POSTERIOR_FAMILIES, describe, supports

SUPPORTS = {
    "a": constraints.interval(-1.0, 3.0),
    "b": (constraints.simplex, (3,)),
    "c": dist.Normal(0, 1).expand([2]).to_event(1),
    "d": constraints.greater_than(2.0),
    "e": (constraints.ordered_vector, (2,)),
}
VARIABLES = describe(SUPPORTS)
RNG = np.random.default_rng(0)
MEAN, DIAGONAL = RNG.normal(size=8), np.exp(0.3 * RNG.normal(size=8))
FULL = np.diag(DIAGONAL) + 0.2 * np.tril(RNG.normal(size=(8, 8)), -1)


def of_family(name, factor):
    module = jax.tree.map(lambda leaf: leaf + 0.1, POSTERIOR_FAMILIES[name](8))
    return Approximation.of_module(VARIABLES, name, module, True, MEAN, factor)


CASES = {
    "gaussian": lambda: Approximation(VARIABLES, MEAN, DIAGONAL),
    "full-gaussian": lambda: Approximation(VARIABLES, MEAN, FULL),
    "student-t": lambda: Approximation(VARIABLES, MEAN, FULL, 7.0),
    "flow": lambda: of_family("flow", FULL),
    "low-rank": lambda: of_family("low-rank", DIAGONAL),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", list(CASES))
def test_the_density_of_draws_after_reading(case):
    """E_q[r / q] = 1 for any density r: here one that is narrower than q; within five standard errors."""
    q = CASES[case]()
    facts, arrays = q.written()
    same = Approximation.read(facts, arrays)
    draws = same.draw(4000, 3)
    np.testing.assert_array_equal(draws["e"], q.draw(4000, 3)["e"])
    log_q = same.log_prob(draws)
    np.testing.assert_array_equal(log_q, q.log_prob(draws))
    np.testing.assert_allclose(same.log_prob(jax.tree.map(lambda values: values[0], draws)), log_q[0], rtol=1e-10)
    with jax.enable_x64(True):
        u, log_det = map(np.asarray, VARIABLES.unconstrain(draws))
        r = dist.MultivariateNormal(jnp.asarray(u.mean(0)), 0.25 * np.cov(u.T))
        ratios = np.exp(np.asarray(r.log_prob(u)) - log_det - log_q)
    assert abs(ratios.mean() - 1) < 5 * ratios.std() / np.sqrt(len(ratios))
    assert same.distributions().event_shape == (8,)


def test_supports_are_written_by_name_only():
    same = supports.read(supports.written(VARIABLES))
    for name, variable in VARIABLES.variables.items():
        assert same.variables[name].shape == variable.shape
        assert type(same.variables[name].support) is type(variable.support)
    assert same.variables["a"].support.upper_bound == 3.0
    assert supports.written(describe({"own": (constraints.zero_sum(1), (3,))})) is None  # not in the list
    with pytest.raises(ValueError, match="unknown"):
        supports.read([{"name": "x", "support": {"name": "os.system"}, "shape": []}])
