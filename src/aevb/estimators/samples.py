"""The L samples of a datapoint: drawing them, and averaging over them."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from numpyro.distributions import Distribution

from aevb.distributions import reparameterize
from aevb.models import RecognitionModel

CHUNK = 10  # samples whose intermediate values are in memory together; fewer use the processor less well


def posterior_samples(recognition: RecognitionModel, x: Any, epsilon: Any) -> tuple[Distribution, Any]:
    """Return q(z|x) and L draws of it, z = g(epsilon, x); see :func:`reparameterized`."""
    q, transform = reparameterized(recognition, x, epsilon)
    return q, transform(epsilon)  # (L, J)


def reparameterized(recognition: RecognitionModel, x: Any, epsilon: Any) -> tuple[Distribution, Callable]:
    """Return q(z|x) and the transformation g of its noise.

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
    return q, transform


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


def in_chunks(function: Callable, *samples) -> Any:
    """Apply a function to each of K samples, along the leading axis of its arguments: values with leading axis K.

    A few samples are computed at a time, and again for their gradient. The memory for intermediate values, such as the
    activations of a decoder, is that of one chunk, whatever K is.

    Example:
        >>> in_chunks(lambda z: 2 * z, jnp.arange(25.0)).shape
        (25,)
    """
    K = len(jax.tree.leaves(samples)[0])
    several = jax.vmap(function)
    if K <= CHUNK:
        return several(*samples)
    whole = K - K % CHUNK
    chunks = jax.tree.map(lambda leaf: leaf[:whole].reshape(-1, CHUNK, *leaf.shape[1:]), samples)
    again = jax.checkpoint(several, prevent_cse=False)  # inside a scan nothing is shared anyway
    values = jax.tree.map(
        lambda leaf: leaf.reshape(whole, *leaf.shape[2:]), lax.map(lambda chunk: again(*chunk), chunks)
    )
    if whole == K:
        return values
    rest = several(*jax.tree.map(lambda leaf: leaf[whole:], samples))
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), values, rest)


def stopped(tree: Any) -> Any:
    """Return a distribution, or any tree, through whose arrays no gradient flows."""
    return jax.tree.map(lambda leaf: lax.stop_gradient(leaf) if eqx.is_inexact_array(leaf) else leaf, tree)
