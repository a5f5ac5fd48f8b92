"""Averages over the L samples of a datapoint."""

from collections.abc import Callable

import jax
import jax.numpy as jnp


def average(function: Callable, *samples):
    """Average a function over the leading axis of its arguments, the L samples; they may be pytrees.

    A single one is not vectorized: the axis of length one would cost the decoder's gradient a transposed copy (6% of
    a step of the paper's network).
    """
    if len(jax.tree.leaves(samples)[0]) == 1:
        return function(*jax.tree.map(lambda sample: sample[0], samples))
    return jax.tree.map(lambda values: jnp.mean(values, axis=0), jax.vmap(function)(*samples))
