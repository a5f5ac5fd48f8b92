"""Some rows of many, evenly spread."""

import numpy as np

MAX_ROWS = 10_000  # over which a bound is averaged


def some(rows: np.ndarray, most: int = MAX_ROWS) -> np.ndarray:
    """Return at most `most` rows, evenly spread over a matrix.

    Example:
        >>> some(np.arange(5), 3).tolist()
        [0, 2, 4]
    """
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]
