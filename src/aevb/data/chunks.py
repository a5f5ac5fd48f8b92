"""Regroup rows from arrays of any length into the equal chunks of a compiled loop."""

from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np

from aevb.training import feed

CHUNK_BYTES = 2**26  # a few chunks are queued in memory while another is used


def max_steps(row_bytes: int, batch_size: int) -> int:
    """Return the maximum number of steps in a chunk, to limit its memory."""
    return min(feed.MAX_CHUNK_STEPS, max(CHUNK_BYTES // (batch_size * row_bytes), 1))


def numbered(arrays: Iterable[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield arrays of rows, each with the row indices, counted over all of them."""
    seen = 0
    for rows in arrays:
        yield rows, np.arange(seen, seen + len(rows))
        seen += len(rows)


def regroup(parts: Iterable[tuple[Any, np.ndarray]], size: int) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the same rows, arrays or trees of them, and their indices in parts of `size` rows each, and then the rest.

    Example:
        >>> [numbers.tolist() for _, numbers in regroup(numbered([np.zeros((3, 1)), np.zeros((2, 1))]), 2)]
        [[0, 1], [2, 3], [4]]
    """
    buffer, filled = None, 0
    for part in parts:  # a part's rows and numbers are filled in alike
        first, num = 0, len(part[1])
        while first < num:
            if buffer is None:  # a new buffer each time: JAX may still use the previous one
                buffer = jax.tree.map(lambda array: np.empty((size, *array.shape[1:]), array.dtype), part)
                filled = 0
            count = min(size - filled, num - first)
            target, source = slice(filled, filled + count), slice(first, first + count)
            for place, array in zip(jax.tree.leaves(buffer), jax.tree.leaves(part), strict=True):
                place[target] = array[source]
            first, filled = first + count, filled + count
            if filled == size:
                yield buffer
                buffer = None
    if buffer is not None:
        yield jax.tree.map(lambda array: array[:filled], buffer)
