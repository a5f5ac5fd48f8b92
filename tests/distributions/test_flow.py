"""Coupling flows: draws, densities and shapes. Nothing here fails by chance: noise is fixed, identities are exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions.batch_util import promote_batch_shape

from aevb.distributions import Flow, reparameterize, starting_flow
from aevb.distributions.flow import coupling_shapes


def bent(seed, num_dimensions=3, num_layers=3, size=0.7):
    """A flow that is far from Gaussian."""
    rng = np.random.default_rng(seed)
    shapes = [coupling_shapes(num_dimensions, 8)] * num_layers
    layers = jax.tree.map(
        lambda shape: jnp.asarray(size * rng.normal(size=shape), float),
        shapes,
        is_leaf=lambda node: isinstance(node, tuple),
    )
    return Flow(jnp.asarray(np.arange(num_dimensions), float), jnp.asarray(np.full(num_dimensions, 0.5), float), layers)


@pytest.mark.float64
@pytest.mark.parametrize("num_dimensions", [1, 2, 3])
def test_density_is_that_of_the_transformed_noise(num_dimensions):
    epsilon = jnp.asarray(np.random.default_rng(1).normal(size=(4, num_dimensions)))

    @jax.jit
    def evaluate(q):
        noise, transform = reparameterize(q)
        return q.log_prob(transform(epsilon)), noise.log_prob(epsilon), jax.vmap(jax.jacobian(transform))(epsilon)

    log_prob, log_noise, jacobian = map(np.asarray, evaluate(bent(0, num_dimensions)))
    np.testing.assert_allclose(log_prob, log_noise - np.linalg.slogdet(jacobian)[1], rtol=1e-10)


def test_draws_equal_the_transformed_noise_of_the_same_shape():
    q = bent(0, 2)
    draws = np.asarray(q.sample(jax.random.key(0), (5,)))
    assert draws.shape == (5, 2)
    assert len(np.unique(draws)) == 10


@pytest.mark.slow
def test_a_batch_of_flows_equals_each_flow_alone():
    flows = [bent(seed) for seed in range(5)]
    q = promote_batch_shape(jax.vmap(lambda q: q)(jax.tree.map(lambda *leaves: jnp.stack(leaves), *flows)))
    assert (q.batch_shape, q.event_shape) == ((5,), (3,))
    z = q.sample(jax.random.key(0), (4,))
    assert z.shape == (4, 5, 3)
    assert z.dtype == jnp.float32
    one = flows[3]
    np.testing.assert_allclose(q.log_prob(z)[:, 3], one.log_prob(z[:, 3]), rtol=1e-4)
    np.testing.assert_allclose(q.mean[3], one.mean, rtol=1e-4)
    noise, transform = reparameterize(q)
    assert transform(noise.sample(jax.random.key(0), (2,))).shape == (2, 5, 3)


def test_training_starts_from_a_gaussian_and_can_change_it():
    q = starting_flow(jax.random.key(0), 3)
    z = np.array([1.0, -2.0, 0.5], np.float32)
    evaluate = jax.jit(lambda q: (jax.value_and_grad(lambda q: q.log_prob(z))(q), q.mean))
    (log_prob, gradient), mean = evaluate(q)  # a pytree in, the same pytree out
    np.testing.assert_allclose(log_prob, -0.5 * np.sum(np.square(z)) - 1.5 * np.log(2 * np.pi), rtol=1e-6)
    np.testing.assert_allclose(mean, 0, atol=1e-6)
    assert all(np.abs(layer["weight_out"]).max() > 0 for layer in gradient.layers)


@jax.jit
@jax.grad
def gradient_of_density(q):
    _, transform = reparameterize(q)
    return q.log_prob(transform(jnp.array([2.0, -1.0, 0.5])))


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
def test_gradients_stay_finite_with_large_weights(size):
    gradient = gradient_of_density(bent(0, size=size))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
