"""Rows of a chunk that are divided among processes: each has those of its own places in every minibatch."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from aevb.parallel import ROWS, group


class DividedRows(eqx.Module):
    """Rows in the order in which the steps of a chunk visit them.

    Args:
        array: (steps, M', D), divided along M', which is M or the next multiple of the number of devices.
        size: M.
    """

    array: Array
    size: int = eqx.field(static=True)

    def __getitem__(self, index: Any) -> Array:
        """Return the rows of the step whose first row has the first of these indices, (M', D); or one row."""
        step, place = divmod(index, self.size)
        return self.array[step, place] if np.ndim(step) == 0 else self.array[step[0]]

    def gathered(self) -> np.ndarray:
        """Return the rows of all processes, (steps M, D); all must call it."""
        return _flat(group().gathered(self.array), self.size)


def divided(rows: np.ndarray, size: int) -> DividedRows | Array:
    """Return a chunk's rows for a program: divided if there are several devices, as they are for one.

    Args:
        rows: (steps, m, ...), those of this process's places; nobody else changes them.
        size: M.
    """
    mesh = group().mesh
    if mesh is None:
        return jax.device_put(rows.reshape(-1, *rows.shape[2:]))
    shape = len(rows), -(-size // mesh.size) * mesh.size, *rows.shape[2:]
    return DividedRows(jax.make_array_from_process_local_data(NamedSharding(mesh, P(None, ROWS)), rows, shape), size)


def gathered(rows: np.ndarray, size: int) -> np.ndarray:
    """Return the rows of all processes, (steps M, ...), given those of each, as in :func:`divided`."""
    all_rows = divided(rows, size)
    return all_rows.gathered() if isinstance(all_rows, DividedRows) else np.asarray(all_rows)


def _flat(rows, size):
    return rows[:, :size].reshape(-1, *rows.shape[2:])
