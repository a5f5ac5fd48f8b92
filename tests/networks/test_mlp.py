import equinox as eqx
import jax
import numpy as np
import pytest

from aevb.networks import ACTIVATIONS, MLP, initialize

REFERENCE = {
    "tanh": np.tanh,
    "relu": lambda a: np.maximum(a, 0),
    "silu": lambda a: a / (1 + np.exp(-a)),
    "softplus": lambda a: np.log1p(np.exp(a)),
    "elu": lambda a: np.where(a > 0, a, np.expm1(a)),
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "identity": lambda a: a,
    # The approximation with tanh that JAX uses (Hendrycks and Gimpel, 2016).
    "gelu": lambda a: a / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3))),
}


@jax.jit
def apply(network, x):
    return network(x)


def test_every_activation_has_a_reference():
    assert set(ACTIVATIONS) == set(REFERENCE)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_hidden_layer_is_activated_and_the_output_is_linear(activation):
    network = initialize(MLP(3, (5,), 2, activation), jax.random.key(0), "paper")
    first, second = network.layers
    x = np.random.default_rng(0).normal(size=3)
    h = REFERENCE[activation](np.asarray(first.weight) @ (20 * x) + np.asarray(first.bias))
    y = np.asarray(second.weight) @ h + np.asarray(second.bias)
    np.testing.assert_allclose(apply(network, 20 * x), y, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("hidden", [(), (4,), (4, 6), (4, 6, 5)])
def test_depth(hidden):
    network = initialize(MLP(3, hidden, 2), jax.random.key(0), "paper")
    assert [layer.weight.shape for layer in network.layers] == list(zip((*hidden, 2), (3, *hidden), strict=True))
    x = np.random.default_rng(0).normal(size=3)
    y = x
    for layer in network.layers[:-1]:
        y = np.tanh(np.asarray(layer.weight) @ y + np.asarray(layer.bias))
    y = np.asarray(network.layers[-1].weight) @ y + np.asarray(network.layers[-1].bias)
    np.testing.assert_allclose(apply(network, x), y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(apply(network, np.stack([x, 2 * x]))[0], y, rtol=1e-5, atol=1e-6)  # the last axis is x


def test_an_input_in_parts_is_the_same_as_their_concatenation():
    network = initialize(MLP(5, (4,), 2), jax.random.key(0))
    x = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    np.testing.assert_allclose(network(x[:, :2], x[:, 2:]), apply(network, x), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"x has shape \(3, 2\) and \(3, 2\), but this layer expects 5"):
        network(x[:, :2], x[:, 2:4])


def test_a_shortcut_adds_a_linear_function_to_the_first_outputs():
    network = initialize(MLP(5, (4,), 3, num_shortcuts=2), jax.random.key(0))
    plain = eqx.tree_at(lambda network: network.shortcut, network, None)
    x = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    added = np.asarray(apply(network, x)) - np.asarray(apply(plain, x))
    np.testing.assert_allclose(added, np.pad(x @ np.asarray(network.shortcut).T, ((0, 0), (0, 1))), atol=1e-5)
    np.testing.assert_allclose(network(x[:, :2], x[:, 2:]), apply(network, x), atol=1e-5)
    assert network.resized(6, 4).shortcut.shape == (2, 6)
