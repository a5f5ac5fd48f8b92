"""Values and gradients are finite and correct far outside the range of a good model."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax import Array

from aevb.distributions import LogScaleNormal
from aevb.estimators.kl import analytic_kl
from aevb.models import BayesianGenerativeModel, GaussianMLP, GenerativeModel
from aevb.models.families import limited

# Errors of values and gradients, in float32 ulps of the largest of the terms that are added: 16 are four bits.
# The worst errors of 12 million points were 6.2, 1.6 and 8.1: a log variance of 14, which is exponentiated, is itself
# rounded by 4.
SPACINGS = {"kl": 8, "kl_of_weights": 8, "log_bernoulli": 8, "log_density": 16}


@partial(jax.jit, static_argnums=(0, 1, 2))
def spread(num, low, high, key):
    """Numbers of both signs with evenly spaced logarithms."""
    size, sign = jax.random.split(key)
    exponent = jax.random.uniform(size, (num,), minval=np.log10(low), maxval=np.log10(high))
    return jnp.where(jax.random.bernoulli(sign, shape=(num,)), 1.0, -1.0) * 10**exponent


def kl(mu, log_variance):
    q = LogScaleNormal(mu[None], limited(log_variance[None]) / 2)
    return analytic_kl(q.to_event(1), dist.Normal(jnp.zeros(1), jnp.ones(1)).to_event(1))


class Weight(eqx.Module):
    """The smallest generative model: one weight."""

    value: Array


def kl_of_weights(mu, log_variance):
    weights = BayesianGenerativeModel(GenerativeModel(dist.Normal(), Weight(mu)))  # pyright: ignore
    return eqx.tree_at(lambda model: jax.tree.leaves(model.log_variance), weights, [log_variance]).kl()


def log_density(mu, log_variance):
    return LogScaleNormal(mu, limited(log_variance) / 2).log_prob(0.5)


def log_bernoulli(logits, x):
    return dist.BernoulliLogits(logits, validate_args=False).log_prob(x)


def points(num):
    keys = jax.random.split(jax.random.key(0), 3)
    return {
        "kl": (kl, (spread(num, 1e-6, 1e6, keys[0]), spread(num, 1e-6, 1e3, keys[1]))),
        "kl_of_weights": (kl_of_weights, (spread(num, 1e-6, 1e6, keys[0]), spread(num, 1e-6, 1e3, keys[1]))),
        "log_density": (log_density, (spread(num, 1e-6, 1e6, keys[0]), spread(num, 1e-6, 1e3, keys[1]))),
        "log_bernoulli": (log_bernoulli, (spread(num, 1e-6, 1e4, keys[0]), jax.random.uniform(keys[2], (num,)))),
    }


def values_and_gradients(function, arguments):
    run = jax.jit(jax.vmap(jax.value_and_grad(function, argnums=(0, 1))))
    return [np.asarray(array) for array in jax.tree.leaves(run(*arguments))]


def largest_term(name, value, arguments):
    """Return the size of the largest term of a value; those of the KL divergence all have the same sign."""
    if name.startswith("kl"):
        return value
    if name == "log_bernoulli":
        return np.maximum(np.abs(arguments[0]), 1)
    log_scale = np.asarray(limited(arguments[1])) / 2
    return np.maximum(np.maximum(np.abs(value + log_scale), np.abs(log_scale)), 1)


@pytest.mark.parametrize("name", SPACINGS)
@pytest.mark.parametrize("num", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_values_and_gradients_at_extreme_points_agree_with_float64(name, num):
    function, arguments = points(num)[name]
    found = values_and_gradients(function, arguments)
    assert all(np.isfinite(array).all() for array in found)
    with jax.enable_x64(True):
        exact = values_and_gradients(function, [jnp.asarray(np.asarray(array), jnp.float64) for array in arguments])
    least = 0 if name.startswith("kl") else 1  # gradients of a KL divergence have one term
    terms = [largest_term(name, exact[0], arguments), *(np.maximum(np.abs(slope), least) for slope in exact[1:])]
    for number, right, term in zip(found, exact, terms, strict=True):
        assert np.max(np.abs(number - right) / term) < SPACINGS[name] * np.finfo(np.float32).eps
    if name.startswith("kl"):
        assert found[0].min() >= 0


@pytest.mark.parametrize("kl", [kl, kl_of_weights])
def test_kl_is_accurate_where_the_naive_formula_loses_all_digits(kl):
    v = np.float32(1e-4)
    naive = (np.exp(v) - np.float32(1) - v) / 2
    exact = (np.expm1(np.float64(v)) - np.float64(v)) / 2
    found = float(jax.jit(kl)(np.float32(0), v))
    assert abs(naive - exact) > 0.9 * exact
    assert abs(found - exact) < 1e-6 * exact


def test_networks_limit_their_log_variances():
    encoder = GaussianMLP(2, (), 1)
    for log_variance in (-1e3, 1e3):
        far = eqx.tree_at(lambda net: net.network.layers[-1].bias, encoder, jnp.array([0.0, log_variance]))
        found = far(jnp.zeros(2)).variance
        np.testing.assert_allclose(np.log(found), limited(jnp.asarray([log_variance])), rtol=1e-5)


def test_limited_log_variances_keep_their_gradient():
    v = np.float32([-1e6, -1e3, -10.5, -10.0, -3.0, 0.0, 3.0, 10.0, 10.5, 1e3, 1e6])
    held, slope = map(np.asarray, jax.jit(jax.vmap(jax.value_and_grad(limited)))(v))
    np.testing.assert_array_equal(held[3:8], v[3:8])
    assert np.all(np.diff(held) > 0)
    assert np.all(slope > 0)
    assert np.abs(held).max() < 30
    np.testing.assert_allclose(held, -held[::-1])
