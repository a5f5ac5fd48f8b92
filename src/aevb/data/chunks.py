"""How rows that come in arrays of any length become the equal chunks of a compiled loop."""

from collections.abc import Iterable, Iterator

import numpy as np

from aevb.training import feed

CHUNK_BYTES = 2**26  # some chunks wait in memory while another is learned from


def max_steps(row_bytes: int, batch_size: int) -> int:
    """Return how many steps a chunk has at the most, in order to stay small in memory."""
    return min(feed.MAX_CHUNK_STEPS, max(CHUNK_BYTES // (batch_size * row_bytes), 1))


def regroup(arrays: Iterable[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """Give the same rows in arrays of this many rows each, and then what is left.

    Example:
        >>> [len(rows) for rows in regroup([np.zeros((3, 1)), np.zeros((4, 1))], 2)]
        [2, 2, 2, 1]
    """
    buffer, filled = None, 0
    for rows in arrays:
        while len(rows):
            if buffer is None:  # a new one each time: JAX may keep the memory of the last
                buffer, filled = np.empty((size, rows.shape[1]), rows.dtype), 0
            taken = rows[: size - filled]
            buffer[filled : filled + len(taken)] = taken
            rows, filled = rows[len(taken) :], filled + len(taken)
            if filled == size:
                yield buffer
                buffer = None
    if buffer is not None:
        yield buffer[:filled]
