"""How much the gradient of each estimator varies with its noise.

Paper: §2.2, §2.3.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from aevb.estimators import ESTIMATORS
from aevb.models import join, split


def encoder_gradient_variance(models, x, estimator: str, num_samples: int, repeats: int, key) -> float:
    """Return the variance of a minibatch's gradient with respect to the encoder's parameters, summed over them.

    Args:
        models: The generative and the recognition model.
        x: The minibatch, (M, D).
        estimator: A key of ``ESTIMATORS``.
        num_samples: L.
        repeats: Draws of the noise over which the variance is taken.
        key: Random key.

    Paper: §2.2, §2.3.
    """
    parameters, constants, skeleton = split(models)
    options = {"estimator": estimator, "num_samples": num_samples, "repeats": repeats, "skeleton": skeleton}
    return float(_variance(parameters, constants, jnp.asarray(x), key, **options))


@partial(jax.jit, static_argnames=("estimator", "num_samples", "repeats", "skeleton"))
def _variance(parameters, constants, x, key, *, estimator, num_samples, repeats, skeleton):
    generative, recognition = join(parameters, constants, skeleton)
    phi, phi_constants, phi_skeleton = split(recognition)

    def bound(phi, epsilon):
        q = join(phi, phi_constants, phi_skeleton)
        return jnp.mean(jax.vmap(lambda x, e: ESTIMATORS[estimator](generative, q, x, e))(x, epsilon))

    def add(sums, key):
        epsilon = recognition.noise(x[0]).sample(key, (len(x), num_samples))
        gradient = jax.grad(bound)(phi, epsilon)
        first, second = sums
        return (jax.tree.map(jnp.add, first, gradient), jax.tree.map(lambda s, g: s + g**2, second, gradient)), None

    zeros = jax.tree.map(jnp.zeros_like, phi)
    (first, second), _ = jax.lax.scan(add, (zeros, zeros), jax.random.split(key, repeats))
    variances = jax.tree.map(lambda s, s2: jnp.sum(s2 - s**2 / repeats) / (repeats - 1), first, second)
    return sum(jax.tree.leaves(variances))


def rows_of(source, rows: np.ndarray) -> jax.Array:
    """Return the first hundred of these rows, the minibatch."""
    return source.read(jnp.asarray(rows[:100]))
