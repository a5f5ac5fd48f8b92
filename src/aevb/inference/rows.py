"""Models and rows on their way into compiled programs: one program for all models of one structure."""

from collections.abc import Callable
from functools import partial, wraps

import jax
import jax.numpy as jnp
from jax import Array, lax

from aevb.models import join, split


def compiled(*static: str) -> Callable[[Callable], Callable]:
    """Compile a function whose first argument is a model, or any pytree with arrays and functions in it.

    The program is found again for another model of the same structure, and in later processes from JAX's cache.

    Args:
        static: Names of its keyword arguments that are not arrays.
    """

    def decorate(function):
        @partial(jax.jit, static_argnames=("skeleton", *static))
        def run(parameters, constants, arguments, *, skeleton, **options):
            return function(join(parameters, constants, skeleton), *arguments, **options)

        @wraps(function)
        def call(model, *arguments, **options):
            parameters, constants, skeleton = split(model)
            return run(parameters, constants, arguments, skeleton=skeleton, **options)

        return call

    return decorate


@jax.jit
def row_keys(key: Array, x: Array) -> Array:
    """Return a key for each row of x (N, D): a function of the key and the row, whatever its place and company."""
    return jax.vmap(lambda row: jax.random.fold_in(key, fingerprint(row)))(x)


def fingerprint(x: Array) -> Array:
    """Hash a datapoint to 32 bits: the sum of hashes of its values' bit patterns, each with its place."""
    bits = lax.bitcast_convert_type(x.astype(jnp.float32).ravel(), jnp.uint32)
    places = jnp.arange(bits.size, dtype=jnp.uint32)
    return jnp.sum(_scramble(bits ^ _scramble(places + 1)), dtype=jnp.uint32)


def _scramble(bits):
    """Mix 32 bits so that each depends on all (the finalizer of Appleby's MurmurHash3, 2011)."""
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * jnp.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)
