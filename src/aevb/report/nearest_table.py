"""How far rows of a table are from the nearest training row: whether a model repeats what it was shown."""

import numpy as np

_BLOCK = 2**22  # differences at a time


def nearest_distances(rows: np.ndarray, train: np.ndarray, are_labels: np.ndarray) -> np.ndarray:
    r"""Return the distance of each row to the nearest training row, (n,): 0 for a copy, 1 if all columns differ.

    .. math:: d(x, y) = \frac{1}{D} \sum_j d_j(x_j, y_j)

    It is Gower's distance: :math:`d_j = 1` for different labels, and for numbers the difference as a share of the range
    that holds 98 % of the training rows, 1 at most. An entry that is missing in only one of the rows counts as
    different, so that a training row with few entries is not close to every row.

    Args:
        rows: (n, D), numbers and codes of labels, NaN where missing.
        train: (N, D), the training rows.
        are_labels: (D,), which columns hold labels.

    Example:
        >>> train = np.array([[0.0, 0.0], [100.0, 1.0]])
        >>> nearest_distances(np.array([[51.0, 1.0], [0.0, 0.0]]), train, np.array([False, True])).round(2).tolist()
        [0.25, 0.0]
    """
    low, high = np.nanquantile(train, [0.01, 0.99], axis=0)
    unit = np.where(are_labels | (high <= low), 1.0, high - low)
    rows, train = rows / unit, train / unit
    size = max(_BLOCK // train.size, 1)
    blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
    return np.concatenate([_nearest(block, train, are_labels) for block in blocks])


def _nearest(rows, train, are_labels):
    difference = np.abs(rows[:, None] - train)  # (n, N, D)
    distances = np.where(are_labels, difference > 0, np.minimum(difference, 1))
    holes = np.isnan(rows)[:, None], np.isnan(train)
    distances = np.where(holes[0] | holes[1], holes[0] != holes[1], distances)
    return distances.mean(axis=2).min(axis=1)
