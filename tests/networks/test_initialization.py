"""Initial values: variances within 5 standard errors (each fails by chance once in 1.7 million seeds)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aevb.models import split, standard_models
from aevb.networks import MLP, initialize

KEY = jax.random.key(0)


def assert_variance(values, expected):
    values = np.concatenate([np.ravel(v) for v in values])
    assert abs(values.var() / expected - 1) < 5 * np.sqrt(2 / values.size)
    assert abs(values.mean()) < 5 * np.sqrt(expected / values.size)


def test_paper_draws_weights_and_biases_with_variance_0_01():
    network = initialize(MLP(100, (300,), 2000), KEY, "paper")
    assert_variance([layer.weight for layer in network.layers], 0.01)
    assert_variance([layer.bias for layer in network.layers], 0.01)


def test_glorot_draws_weights_by_their_fans_and_sets_biases_to_zero():
    network = initialize(MLP(100, (300,), 50), KEY, "glorot")
    assert_variance([network.layers[0].weight], 2 / 400)
    assert_variance([network.layers[1].weight], 2 / 350)
    assert all((layer.bias == 0).all() for layer in network.layers)


def test_glorot_counts_the_kernel_of_a_convolution():
    network = initialize(eqx.nn.Conv2d(16, 32, kernel_size=3, key=KEY), KEY, "glorot")
    assert_variance([network.weight], 2 / ((16 + 32) * 9))


@pytest.mark.parametrize("scheme", ["glorot", "paper"])
def test_a_fixed_prior_is_unchanged(scheme):
    models = initialize(standard_models(4, 2, (3,), "bernoulli"), KEY, scheme)
    prior = models[0].latent_distribution()
    assert (prior.mean == 0).all()
    assert (prior.variance == 1).all()
    assert models[0].decoder.network.layers[0].weight.any()


@pytest.mark.parametrize("scheme", ["glorot", "paper"])
def test_whole_models_and_their_parameters_get_the_same_values(scheme):
    models = standard_models(4, 2, (3,), "gaussian")
    whole = split(initialize(models, KEY, scheme)).parameters
    parameters = initialize(split(models).parameters, KEY, scheme)
    assert eqx.tree_equal(whole, parameters)


def test_different_keys_give_different_values_and_types_are_kept():
    network = eqx.tree_at(lambda n: n.layers[0].weight, MLP(4, (), 3), jnp.zeros((3, 4), jnp.float16))
    first, second = (initialize(network, jax.random.key(seed), "paper") for seed in (0, 1))
    assert first.layers[0].weight.dtype == jnp.float16
    assert (first.layers[0].weight != second.layers[0].weight).any()


def test_the_error_names_an_unknown_scheme():
    with pytest.raises(ValueError, match=r"'xavier'.*glorot.*paper"):
        initialize(MLP(2, (), 1), KEY, "xavier")
