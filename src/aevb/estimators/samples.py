"""The L samples of a datapoint: drawing them, and averaging over them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from numpyro.distributions import Distribution

from aevb.distributions import reparameterize
from aevb.models import RecognitionModel


def posterior_samples(recognition: RecognitionModel, x: Any, epsilon: Any) -> tuple[Distribution, Any]:
    """Return q(z|x) and L draws of it, z = g(epsilon, x).

    Raises:
        ValueError: The noise does not have the shape of L draws; broadcasting would silently change the draws.
    """
    q = recognition(x)
    noise, transform = reparameterize(q)
    shapes = jax.tree.map(jnp.shape, epsilon)
    num_draws = [shape[:1] for shape in jax.tree.leaves(shapes, is_leaf=_is_shape)]
    if noise.shape(num_draws[0]) != shapes or num_draws[0] in ((), (0,)):
        expected = jax.tree.map(lambda shape: ("L", *shape), noise.shape(), is_leaf=_is_shape)
        raise ValueError(
            f"epsilon has shape {shapes}; L draws of the noise of one datapoint have shape {expected}. For a batch use "
            "jax.vmap, or aevb.estimators.minibatch."
        )
    return q, transform(epsilon)  # (L, J)


def _is_shape(node):
    return isinstance(node, tuple)


def average(function: Callable, *samples):
    """Average a function over the leading axis of its arguments, the L samples; they may be pytrees.

    A single sample is not vectorized: with an axis of length one, the decoder's gradient would need a transposed copy
    (6% of a step of the paper's network).
    """
    if len(jax.tree.leaves(samples)[0]) == 1:
        return function(*jax.tree.map(lambda sample: sample[0], samples))
    return jax.tree.map(lambda values: jnp.mean(values, axis=0), jax.vmap(function)(*samples))
