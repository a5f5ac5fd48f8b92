"""Rows of a sparse matrix on the device; a step makes only the rows that it reads dense."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy import sparse


class SparseRows(eqx.Module):
    """The nonzero entries of a matrix (N, D), row after row: SciPy's CSR format, as arrays that a program can read.

    Args:
        values: (number of entries + 1,).
        columns: (number of entries + 1,), the column of each entry.
        starts: (N + 1,), the place of each row's first entry, and the number of entries.
        num_columns: D.
        width: The largest number of entries in a row.

    Example:
        >>> rows = SparseRows.of(sparse.csr_array(np.array([[0, 2, 0], [0, 0, 0], [1, 0, 3]])))
        >>> rows[jnp.array([2, 0])].tolist()
        [[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]]
    """

    values: Any
    columns: Any
    starts: Any
    num_columns: int = eqx.field(static=True)
    width: int = eqx.field(static=True)

    @classmethod
    def of(cls, matrix: Any) -> "SparseRows":
        """Return the rows of a SciPy matrix in CSR format."""
        starts = np.asarray(matrix.indptr, np.int32)
        width = int(np.diff(starts).max(initial=1))
        values, columns = np.append(matrix.data, 0), np.append(matrix.indices, 0)  # never empty
        return cls(values.astype(np.float32), columns.astype(np.int32), starts, matrix.shape[1], width)

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        return len(self.starts) - 1, self.num_columns

    def __getitem__(self, index: Array | int) -> Array:
        """Return dense rows with these indices, (..., D), inside a compiled program."""
        index, starts = jnp.asarray(index), jnp.asarray(self.starts)
        first, end = starts[index], starts[index + 1]
        places = first[..., None] + jnp.arange(self.width)  # (..., width)
        values = jnp.where(places < end[..., None], jnp.asarray(self.values)[places], 0)
        columns = jnp.asarray(self.columns)[places]
        flat = jnp.zeros((index.size, self.num_columns), values.dtype)
        numbers = jnp.arange(index.size)[:, None]
        dense = flat.at[numbers, columns.reshape(-1, self.width)].add(values.reshape(-1, self.width))
        return dense.reshape(*index.shape, self.num_columns)

    def on_host(self, numbers: np.ndarray) -> np.ndarray:
        """Return dense rows with these indices, (n, D), without compiling a program."""
        parts = tuple(np.asarray(part) for part in (self.values, self.columns, self.starts))
        return sparse.csr_array(parts, shape=self.shape)[numbers].toarray()


def is_sparse(X: Any) -> bool:
    """Whether this is a sparse matrix of SciPy, or its rows on the device."""
    return sparse.issparse(X) or isinstance(X, SparseRows)
