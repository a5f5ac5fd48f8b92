"""Data on the device, as it is stored, and how it becomes numbers inside the step."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array


class Source(eqx.Module):
    """Rows on the device. Bytes stay bytes until a step reads them.

    Args:
        rows: (N, D), of any number type.
        scale: What a stored number is multiplied by: 1/255 for grey levels kept as bytes.
    """

    rows: Array
    scale: Array

    def __init__(self, rows, scale: float = 1.0):
        self.rows = jnp.asarray(rows)
        self.scale = jnp.asarray(scale, jnp.result_type(float))

    def read(self, index: Array) -> Array:
        """Return the datapoints of these row numbers in floating point, (..., D)."""
        return self.rows[index].astype(self.scale.dtype) * self.scale
