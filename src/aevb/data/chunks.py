"""Regroup rows from arrays of any length into the equal chunks of a compiled loop."""

from collections.abc import Iterable, Iterator

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


def regroup(parts: Iterable[tuple[np.ndarray, np.ndarray]], size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the same rows and their indices in arrays of `size` rows each, and then the rest.

    Example:
        >>> [numbers.tolist() for _, numbers in regroup(numbered([np.zeros((3, 1)), np.zeros((2, 1))]), 2)]
        [[0, 1], [2, 3], [4]]
    """
    buffer, numbers, filled = None, np.empty(0, int), 0
    for rows, rows_numbers in parts:
        first = 0
        while first < len(rows):
            if buffer is None:  # a new buffer each time: JAX may still use the previous one
                buffer, numbers, filled = np.empty((size, rows.shape[1]), rows.dtype), np.empty(size, int), 0
            count = min(size - filled, len(rows) - first)
            buffer[filled : filled + count] = rows[first : first + count]
            numbers[filled : filled + count] = rows_numbers[first : first + count]
            first, filled = first + count, filled + count
            if filled == size:
                yield buffer, numbers
                buffer = None
    if buffer is not None:
        yield buffer[:filled], numbers[:filled]
