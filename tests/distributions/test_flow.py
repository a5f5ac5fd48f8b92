"""Coupling flows: draws, densities and shapes. Nothing here fails by chance: noise is fixed, identities are exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions.batch_util import promote_batch_shape

from aevb.distributions import Flow, reparameterize, starting_flow
from aevb.distributions.flow import coupling_shapes


def bent(key, num_dimensions=3, num_layers=3, size=0.7):
    """A flow that is far from Gaussian."""
    shapes = [coupling_shapes(num_dimensions, 8)] * num_layers
    leaves, structure = jax.tree.flatten(shapes, is_leaf=lambda node: isinstance(node, tuple))
    keys = jax.random.split(key, len(leaves))
    arrays = [size * jax.random.normal(k, shape) for k, shape in zip(keys, leaves, strict=True)]
    layers = jax.tree.unflatten(structure, arrays)
    return Flow(jnp.arange(num_dimensions, dtype=float), jnp.full(num_dimensions, 0.5), layers)


@pytest.mark.float64
@pytest.mark.parametrize("num_dimensions", [1, 2, 3])
def test_density_is_that_of_the_transformed_noise(num_dimensions):
    q = bent(jax.random.key(0), num_dimensions)
    noise, transform = reparameterize(q)
    epsilon = noise.sample(jax.random.key(1), (4,))
    log_det = jnp.linalg.slogdet(jax.vmap(jax.jacobian(transform))(epsilon))[1]
    np.testing.assert_allclose(q.log_prob(transform(epsilon)), noise.log_prob(epsilon) - log_det, rtol=1e-10)


@pytest.mark.slow
def test_a_batch_of_flows_is_each_of_them():
    q = promote_batch_shape(jax.vmap(bent)(jax.random.split(jax.random.key(2), 5)))
    assert (q.batch_shape, q.event_shape) == ((5,), (3,))
    z = q.sample(jax.random.key(0), (4,))
    assert z.shape == (4, 5, 3)
    assert z.dtype == jnp.float32
    one = bent(jax.random.split(jax.random.key(2), 5)[3])
    np.testing.assert_allclose(q.log_prob(z)[:, 3], one.log_prob(z[:, 3]), rtol=1e-4)
    np.testing.assert_allclose(q.mean[3], one.mean, rtol=1e-4)
    noise, transform = reparameterize(q)
    assert transform(noise.sample(jax.random.key(0), (2,))).shape == (2, 5, 3)


def test_learning_starts_from_a_gaussian_and_can_leave_it():
    q = starting_flow(jax.random.key(0), 3)
    z = jnp.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(q.log_prob(z), -0.5 * jnp.sum(z**2) - 1.5 * jnp.log(2 * jnp.pi), rtol=1e-6)
    np.testing.assert_allclose(q.mean, 0, atol=1e-6)
    gradient = jax.jit(jax.grad(lambda q: q.log_prob(z)))(q)  # a pytree in, the same pytree out
    assert all(np.abs(layer["weight_out"]).max() > 0 for layer in gradient.layers)


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
def test_gradients_stay_finite_with_large_weights(size):
    def bound(q):
        _, transform = reparameterize(q)
        return q.log_prob(transform(jnp.array([2.0, -1.0, 0.5])))

    gradient = jax.grad(bound)(bent(jax.random.key(0), size=size))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
