"""Some rows of many, evenly spread."""

import numpy as np

MAX_ROWS = 10_000  # over which a bound is averaged


def some(rows: np.ndarray, most: int = MAX_ROWS) -> np.ndarray:
    """Return at most `most` rows, evenly spread over a matrix.

    Example:
        >>> some(np.arange(5), 3).tolist()
        [0, 2, 4]
    """
    return rows if len(rows) <= most else rows[places(len(rows), most)]


def places(num_rows: int, most: int = MAX_ROWS) -> np.ndarray:
    """Return the indices of these rows, ascending."""
    return np.arange(num_rows) if num_rows <= most else np.linspace(0, num_rows - 1, most).astype(int)
