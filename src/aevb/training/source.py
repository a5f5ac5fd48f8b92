"""Data on the device, as they are stored, and how they become datapoints inside the step."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array

from aevb.arrays import on_device
from aevb.models import Conversion


class Source(eqx.Module):
    """Rows on the device. Bytes stay bytes until a step reads them.

    Args:
        rows: (N, D), of any number type; or a tree of arrays with leading axis N.
        conversion: From rows to datapoints; None for numbers as they are.
    """

    rows: Any
    conversion: Conversion

    def __init__(self, rows, conversion: Conversion | None = None):
        self.rows = jax.tree.map(on_device, rows)
        self.conversion = Conversion() if conversion is None else conversion

    def read(self, index: Array | slice | int) -> Any:
        """Return the datapoints of these row numbers: in floating point, (..., D), or a tree of arrays."""
        return self.conversion(jax.tree.map(lambda array: array[index], self.rows))

    def take(self, rows: np.ndarray) -> Any:
        """Return the datapoints of rows that are known, outside of compiled programs and without one."""
        stored = jax.tree.map(lambda array: np.asarray(array)[rows], self.rows)
        return jax.tree.map(on_device, self.conversion(stored, np))

    def draw(self, index: Array, key: Array | None) -> Any:
        """Return what a step learns from: binary draws by this key, or without one the datapoints themselves."""
        x = self.read(index)
        return x if key is None else self.conversion.draw(x, key)

    def keys(self, key: Array, num_steps: int) -> Array | None:
        """Return a key for the draws of each step; None if there are none."""
        return jax.random.split(jax.random.fold_in(key, 1), num_steps) if self.conversion.is_dynamic else None

    def described(self) -> tuple[list, str]:
        """Return arrays and a text that tell these data from others."""
        conversion = self.conversion
        text = str(conversion.is_dynamic if conversion.is_plain else conversion.describe())
        return jax.tree.leaves((self.rows, conversion)), text
