"""Arrays from NumPy to the device without a program: `jnp.asarray` and `jnp.zeros` compile one for each shape."""

import hashlib
from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer


def on_device(array) -> Array:
    """Return an array on the device that shares no memory with the one given; those that are there stay as they are."""
    return array if isinstance(array, Array) else jax.device_put(np.array(array))


def filled(shape: int | tuple[int, ...], value: float) -> Array:
    """Return an array of JAX's present floating type, with one value everywhere."""
    dtype = jnp.result_type(float)
    if isinstance(jnp.zeros(()), Tracer):  # where shapes alone are asked for, however large, nothing is filled
        return jnp.full(shape, value, dtype)
    return jax.device_put(np.full(shape, value, dtype))


def checksum(arrays: Iterable, text: str = "") -> str:
    """Return the SHA-256 of some arrays, with their shapes and types, and of a text; it takes no memory."""
    found = hashlib.sha256(text.encode(), usedforsecurity=False)
    for array in arrays:
        array = np.asarray(array)
        found.update(f"\0{array.shape} {array.dtype}\0".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()
