"""The L samples of a datapoint: their draw, and averages over them."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from numpyro.distributions import Distribution

from aevb.distributions import reparameterize
from aevb.models import RecognitionModel


def posterior_samples(recognition: RecognitionModel, x: Array, epsilon: Array) -> tuple[Distribution, Array]:
    """Return q(z|x) and L draws of it, z = g(epsilon, x).

    Raises:
        ValueError: The noise is not that of L draws; broadcasting would make other draws of it in silence.
    """
    q = recognition(x)
    noise, transform = reparameterize(q)
    if jnp.shape(epsilon)[1:] != noise.shape() or jnp.shape(epsilon)[:1] in ((), (0,)):
        raise ValueError(
            f"epsilon has shape {jnp.shape(epsilon)}; L draws of the noise of one datapoint have shape "
            f"{('L', *noise.shape())}. For a batch use jax.vmap, or aevb.estimators.minibatch."
        )
    return q, transform(epsilon)  # (L, J)


def average(function: Callable, *samples):
    """Average a function over the leading axis of its arguments, the L samples; they may be pytrees.

    A single one is not vectorized: the axis of length one would cost the decoder's gradient a transposed copy (6% of
    a step of the paper's network).
    """
    if len(jax.tree.leaves(samples)[0]) == 1:
        return function(*jax.tree.map(lambda sample: sample[0], samples))
    return jax.tree.map(lambda values: jnp.mean(values, axis=0), jax.vmap(function)(*samples))
