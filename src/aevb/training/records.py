"""Data of any structure on the device: arrays with one row per datapoint."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array

from aevb.arrays import on_device
from aevb.errors import shown


class Records(eqx.Module):
    """Datapoints made of several arrays, such as the pair (inputs, outputs).

    Args:
        arrays: A pytree of arrays; those of a data set have the datapoints along their first axis. None for no data.
        whole: Whether every step reads all the data.
    """

    arrays: Any
    whole: bool = eqx.field(static=True)

    def __init__(self, arrays: Any, *, whole: bool):
        self.arrays = jax.tree.map(on_device, arrays)
        self.whole = whole

    def read(self, index: Array) -> Any:
        """Return the datapoints with these row indices, or all the data."""
        return self.arrays if self.whole else jax.tree.map(lambda array: array[index], self.arrays)

    def draw(self, index: Array, key: None) -> Any:
        """Return the datapoints for a step, unchanged."""
        return self.read(index)

    def keys(self, key: Array, num_steps: int) -> None:
        """Return None: reading is not random."""


def check_numbers(data: Any) -> None:
    """Check that all arrays are numeric."""
    for array in map(np.asarray, jax.tree.leaves(data)):
        if array.dtype.kind in "OUSmM":
            first = array.ravel()[0] if array.size else None
            raise ValueError(f"data: expected numeric values, got {array.dtype}, such as {shown(first)}. Encode them.")


def check_records(data: Any) -> int:
    """Return the number of datapoints; raise an error if arrays disagree about it."""
    shapes = [np.shape(array) for array in jax.tree.leaves(data)]
    if not shapes or () in shapes or len({shape[0] for shape in shapes}) != 1 or not shapes[0][0]:
        raise ValueError(
            f"data: its arrays have shapes {shapes}; the first axis must index the datapoints, with equal lengths."
        )
    return shapes[0][0]
