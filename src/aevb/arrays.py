"""Arrays from NumPy to the device without a program: `jnp.asarray` and `jnp.zeros` compile one for each shape."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


def on_device(array) -> Array:
    """Return an array on the device that shares no memory with the one given; those that are there stay as they are."""
    return array if isinstance(array, Array) else jax.device_put(np.array(array))


def filled(shape: int | tuple[int, ...], value: float) -> Array:
    """Return an array of JAX's present floating type, with one value everywhere."""
    return jax.device_put(np.full(shape, value, jnp.result_type(float)))
