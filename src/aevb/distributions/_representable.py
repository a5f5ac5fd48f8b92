"""Move numbers that floating point rounded onto the boundary of an open set just inside it.

On the boundary, quantiles and log densities are infinite; one rounding error inside they are finite.
"""

import jax.numpy as jnp
from jax import Array


def open_unit_interval(u: Array) -> Array:
    """Move 0 and 1 to the nearest numbers inside (0, 1)."""
    u = jnp.asarray(u, jnp.result_type(u, float))
    limits = jnp.finfo(u.dtype)
    return jnp.clip(u, limits.tiny, 1 - limits.epsneg)


def positive(z: Array) -> Array:
    """Move 0 to the smallest normal number."""
    return jnp.maximum(z, jnp.finfo(z.dtype).tiny)
