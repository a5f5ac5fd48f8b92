"""Data on the device as stored, and their conversion to datapoints inside the step."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import Array

from aevb.arrays import on_device
from aevb.models import Conversion, SparseRows
from aevb.training.divided import DividedRows


class Source(eqx.Module):
    """Rows on the device. Bytes stay bytes until a step reads them.

    Args:
        rows: (N, D), of any number type, or :class:`~aevb.models.SparseRows`; or a tree of arrays with leading axis N.
        conversion: From rows to datapoints; None for numbers that are used unchanged.
    """

    rows: Any
    conversion: Conversion

    def __init__(self, rows, conversion: Conversion | None = None):
        self.rows = jax.tree.map(on_device, rows)
        self.conversion = Conversion() if conversion is None else conversion

    def read(self, index: Array | slice | int) -> Any:
        """Return the datapoints with these row indices: in floating point, (..., D), or a tree of arrays."""
        return self.conversion(self._at(index))

    def _at(self, index):
        return jax.tree.map(lambda array: array[index], self.rows, is_leaf=_has_own_rows)

    def take(self, rows: np.ndarray) -> Any:
        """Return the datapoints with these row indices on the host, without compiling a program."""
        return self.conversion(self.stored(rows), np)

    def stored(self, rows: np.ndarray) -> Any:
        """Return rows with these indices as they are stored, on the host; sparse ones as a dense array."""

        def some(array):
            return array.on_host(rows) if _is_sparse(array) else np.asarray(array)[rows]

        return jax.tree.map(some, self.rows, is_leaf=_is_sparse)

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are sparse."""
        return _is_sparse(self.rows)

    def draw(self, index: Array, key: Array | None) -> Any:
        """Return the data of a step: draws with this key, or the datapoints themselves if it is None."""
        return self.read(index) if key is None else self.conversion.draw(self._at(index), key)

    def keys(self, key: Array, num_steps: int) -> Array | None:
        """Return a key for the draws of each step; None if data are not drawn."""
        return jax.random.split(jax.random.fold_in(key, 1), num_steps) if self.conversion.is_dynamic else None

    def described(self) -> tuple[list, str]:
        """Return arrays and a text that identify these data."""
        conversion = self.conversion
        text = str(conversion.is_dynamic if conversion.is_plain else conversion.describe())
        return jax.tree.leaves((self.rows, conversion)), text


class Rows(NamedTuple):
    """Some rows of a source."""

    source: Source
    numbers: np.ndarray  # (n,), their indices in the source
    weights: np.ndarray | None = None  # (n,); None: they are equal


def _is_sparse(rows):
    return isinstance(rows, SparseRows)


def _has_own_rows(rows):
    return isinstance(rows, SparseRows | DividedRows)
