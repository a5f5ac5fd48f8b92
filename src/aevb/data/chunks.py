"""How rows that come in arrays of any length become the equal chunks of a compiled loop."""

from collections.abc import Iterable, Iterator

import numpy as np

from aevb.training import feed

CHUNK_BYTES = 2**26  # some chunks wait in memory while another is learned from


def max_steps(row_bytes: int, batch_size: int) -> int:
    """Return how many steps a chunk has at the most, in order to stay small in memory."""
    return min(feed.MAX_CHUNK_STEPS, max(CHUNK_BYTES // (batch_size * row_bytes), 1))


def numbered(arrays: Iterable[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Give arrays of rows, each with the rows' numbers, counted over all of them."""
    seen = 0
    for rows in arrays:
        yield rows, np.arange(seen, seen + len(rows))
        seen += len(rows)


def regroup(parts: Iterable[tuple[np.ndarray, np.ndarray]], size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Give the same rows, and their numbers, in arrays of this many rows each, and then what is left.

    Example:
        >>> [numbers.tolist() for _, numbers in regroup(numbered([np.zeros((3, 1)), np.zeros((2, 1))]), 2)]
        [[0, 1], [2, 3], [4]]
    """
    buffer, numbers, filled = None, np.empty(0, int), 0
    for rows, rows_numbers in parts:
        first = 0
        while first < len(rows):
            if buffer is None:  # a new one each time: JAX may keep the memory of the last
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
