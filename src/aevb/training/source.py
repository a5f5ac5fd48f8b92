"""Data on the device as stored, and their conversion to datapoints inside the step."""

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
        conversion: From rows to datapoints; None for numbers that are used unchanged.
    """

    rows: Any
    conversion: Conversion

    def __init__(self, rows, conversion: Conversion | None = None):
        self.rows = jax.tree.map(on_device, rows)
        self.conversion = Conversion() if conversion is None else conversion

    def read(self, index: Array | slice | int) -> Any:
        """Return the datapoints with these row indices: in floating point, (..., D), or a tree of arrays."""
        return self.conversion(jax.tree.map(lambda array: array[index], self.rows))

    def take(self, rows: np.ndarray) -> Any:
        """Return the datapoints with these row indices, outside of compiled programs and without compiling one."""
        stored = jax.tree.map(lambda array: np.asarray(array)[rows], self.rows)
        return jax.tree.map(on_device, self.conversion(stored, np))

    def draw(self, index: Array, key: Array | None) -> Any:
        """Return the data of a step: binary draws with this key, or the datapoints themselves if it is None."""
        x = self.read(index)
        return x if key is None else self.conversion.draw(x, key)

    def keys(self, key: Array, num_steps: int) -> Array | None:
        """Return a key for the draws of each step; None if data are not drawn."""
        return jax.random.split(jax.random.fold_in(key, 1), num_steps) if self.conversion.is_dynamic else None

    def described(self) -> tuple[list, str]:
        """Return arrays and a text that identify these data."""
        conversion = self.conversion
        text = str(conversion.is_dynamic if conversion.is_plain else conversion.describe())
        return jax.tree.leaves((self.rows, conversion)), text
