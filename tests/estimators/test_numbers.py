"""Values and gradients that are numbers, and the right ones, far outside of where a good model lives."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from aevb.distributions import LogScaleNormal
from aevb.estimators.kl import analytic_kl
from aevb.models.conditionals import limited

# Of the 24 bits of float32. A log variance of 14 is itself rounded by 5e-7, and the density has that as a relative
# error, besides that of its exponential: of a million points the worst was off by 1.93e-6, a little over 5 bits.
LOST = {"kl": 2.0**-20, "log_bernoulli": 2.0**-20, "log_density": 2.0**-18}


@partial(jax.jit, static_argnums=(0, 1, 2))
def spread(num, low, high, key):
    """Numbers of both signs whose logarithms are spread evenly."""
    size, sign = jax.random.split(key)
    exponent = jax.random.uniform(size, (num,), minval=np.log10(low), maxval=np.log10(high))
    return jnp.where(jax.random.bernoulli(sign, shape=(num,)), 1.0, -1.0) * 10**exponent


def kl(mu, log_variance):
    q = LogScaleNormal(mu[None], limited(log_variance[None]) / 2)
    return analytic_kl(q.to_event(1), dist.Normal(jnp.zeros(1), jnp.ones(1)).to_event(1))


def log_density(mu, log_variance):
    return LogScaleNormal(mu, limited(log_variance) / 2).log_prob(0.5)


def log_bernoulli(logits, x):
    return dist.BernoulliLogits(logits, validate_args=False).log_prob(x)


def points(num):
    keys = jax.random.split(jax.random.key(0), 3)
    return {
        "kl": (kl, (spread(num, 1e-6, 1e6, keys[0]), spread(num, 1e-6, 1e3, keys[1]))),
        "log_density": (log_density, (spread(num, 1e-6, 1e6, keys[0]), spread(num, 1e-6, 1e3, keys[1]))),
        "log_bernoulli": (log_bernoulli, (spread(num, 1e-6, 1e4, keys[0]), jax.random.uniform(keys[2], (num,)))),
    }


def values_and_gradients(function, arguments):
    run = jax.jit(jax.vmap(jax.value_and_grad(function, argnums=(0, 1))))
    return [np.asarray(array) for array in jax.tree.leaves(run(*arguments))]


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize("num", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_far_points_have_finite_values_and_gradients_that_float64_confirms(name, num):
    function, arguments = points(num)[name]
    found = values_and_gradients(function, arguments)
    assert all(np.isfinite(array).all() for array in found)
    with jax.enable_x64(True):
        exact = values_and_gradients(function, [jnp.asarray(np.asarray(array), jnp.float64) for array in arguments])
    # What is a sum of terms of both signs, as l - l x, is right to four bits of its largest term.
    terms = {"kl": exact[0], "log_density": np.maximum(np.abs(exact[0]), 1)}
    terms["log_bernoulli"] = np.maximum(np.abs(np.asarray(arguments[0])), 1)
    largest = np.abs(terms[name])
    assert np.max(np.abs(found[0] - exact[0]) / largest) < LOST[name]
    if name == "kl":
        assert found[0].min() >= 0


def test_kl_is_right_where_the_naive_form_is_wrong_by_all_of_it():
    v = np.float32(1e-4)
    naive = (np.exp(v) - np.float32(1) - v) / 2
    exact = (np.expm1(np.float64(v)) - np.float64(v)) / 2
    found = float(jax.jit(kl)(np.float32(0), v))
    assert abs(naive - exact) > 0.9 * exact
    assert abs(found - exact) < 1e-6 * exact


def test_log_variances_are_held_back_without_losing_their_gradient():
    v = np.float32([-1e6, -1e3, -10.5, -10.0, -3.0, 0.0, 3.0, 10.0, 10.5, 1e3, 1e6])
    held, slope = map(np.asarray, jax.jit(jax.vmap(jax.value_and_grad(limited)))(v))
    np.testing.assert_array_equal(held[3:8], v[3:8])
    assert np.all(np.diff(held) > 0)
    assert np.all(slope > 0)
    assert np.abs(held).max() < 30
    np.testing.assert_allclose(held, -held[::-1])
