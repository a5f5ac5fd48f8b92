"""Data on the device, as it is stored, and how it becomes numbers inside the step."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aevb.arrays import on_device


class Source(eqx.Module):
    """Rows on the device. Bytes stay bytes until a step reads them.

    Args:
        rows: (N, D), of any number type.
        scale: What a stored number is multiplied by: 1/255 for grey levels kept as bytes.
        is_dynamic: Whether a step sees binary draws, whose probabilities of 1 the numbers are.
    """

    rows: Array
    scale: Array
    is_dynamic: bool = eqx.field(static=True)

    def __init__(self, rows, scale: float | Array = 1.0, is_dynamic: bool = False):
        self.rows = on_device(rows)
        self.scale = jnp.asarray(scale, jnp.result_type(float))
        self.is_dynamic = is_dynamic

    def read(self, index: Array | slice) -> Array:
        """Return the datapoints of these row numbers in floating point, (..., D)."""
        return self.rows[index].astype(self.scale.dtype) * self.scale

    def take(self, rows: np.ndarray) -> Array:
        """Return the same for rows that are known, outside of compiled programs and without one."""
        return on_device(np.asarray(self.rows)[rows].astype(self.scale.dtype) * np.asarray(self.scale))

    def draw(self, index: Array, key: Array | None) -> Array:
        """Return what a step learns from: binary draws by this key, or without one the datapoints themselves."""
        x = self.read(index)
        return x if key is None else (jax.random.uniform(key, x.shape, x.dtype) < x).astype(x.dtype)

    def keys(self, key: Array, num_steps: int) -> Array | None:
        """Return a key for the draws of each step; None if there are none."""
        return jax.random.split(jax.random.fold_in(key, 1), num_steps) if self.is_dynamic else None
