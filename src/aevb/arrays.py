"""Creating arrays on the device without compiling a program for each shape, and hashing them."""

import hashlib
from collections.abc import Iterable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer


def on_device(array) -> Array:
    """Copy an array to the device, so that it shares no memory with the original; JAX arrays are returned unchanged."""
    return array if isinstance(array, Array) else jax.device_put(np.array(array))


def filled(shape: int | tuple[int, ...], value: float) -> Array:
    """Return an array of JAX's current floating-point type, filled with one value."""
    dtype = jnp.result_type(float)
    if isinstance(jnp.zeros(()), Tracer):  # if only shapes are computed, nothing is filled, however large
        return jnp.full(shape, value, dtype)
    return jax.device_put(np.full(shape, value, dtype))


def num_rows(x: Any) -> int:
    """Return the length of the leading axis that the arrays of a tree share."""
    return np.shape(jax.tree.leaves(x)[0])[0]  # a sparse matrix has a shape, but no length


def checksum(arrays: Iterable, text: str = "") -> str:
    """Return the SHA-256 of some arrays, with their shapes and types, and of a text; the data are not copied."""
    found = hashlib.sha256(text.encode(), usedforsecurity=False)
    for array in arrays:
        array = np.asarray(array)
        found.update(f"\0{array.shape} {array.dtype}\0".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


@partial(jax.jit, static_argnames="num")
def several_keys(key: Array, num: int) -> tuple[Array, ...]:
    """Return the keys that a key is split into, by one program; each call of `jax.random` compiles its own."""
    return tuple(jax.random.split(key, num))


@jax.jit
def row_keys(key: Array, x: Any) -> Array:
    """Return a key for each row of x, (N, D) or a tree: a function of the key and the row, not of its position."""
    return jax.vmap(lambda row: jax.random.fold_in(key, fingerprint(row)))(x)


def fingerprint(x: Any) -> Array:
    """Hash a datapoint, an array or a tree of them, to 32 bits."""
    first, *rest = jax.tree.leaves(x)
    hashed = _hash(first)
    for leaf in rest:
        hashed = _scramble(hashed + 1) + _hash(leaf)
    return hashed


def _hash(x):
    """Return the sum of hashes of an array's bit patterns, each combined with its position."""
    bits = lax.bitcast_convert_type(x.astype(jnp.float32).ravel(), jnp.uint32)
    positions = jnp.arange(bits.size, dtype=jnp.uint32)
    return jnp.sum(_scramble(bits ^ _scramble(positions + 1)), dtype=jnp.uint32)


def _scramble(bits):
    """Mix 32 bits so that each one depends on all of them (the finalizer of Appleby's MurmurHash3, 2011)."""
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * jnp.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)
