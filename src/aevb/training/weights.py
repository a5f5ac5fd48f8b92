"""Rows with weights: how often an epoch visits each, and the weighted average of their values."""

import numpy as np


def visits(weights: np.ndarray, start: float, num_epochs: int = 1) -> np.ndarray:
    r"""Return which rows some epochs visit, in proportion to their weights, by systematic sampling.

    .. math:: E[n_i] = N w_i / \sum_j w_j

    The rows are intervals of these lengths, one after the other from 0 to N. An epoch visits the row at each of the N
    points u, 1 + u, 2 + u, ...; a row is therefore visited as often as its expectation, rounded down or up. If the
    start u is uniform in [0, 1), the average over the visits is an unbiased estimate of the rows' weighted average.
    The points of R epochs are 1/R apart, so that this holds for each epoch and, with R times the expectation, for all.

    Args:
        weights: (N,), at least 0 and not all 0. Rows with weight 0 are never visited.
        start: In [0, 1).
        num_epochs: R.

    Returns:
        (R N,), indices of the rows; with equal weights 0, ..., N - 1 in each epoch.

    Example:
        >>> visits(np.array([1.0, 0.0, 2.5, 0.5]), start=0.75)
        array([0, 2, 2, 3])
    """
    N, ends = len(weights), np.cumsum(weights)
    first = (start + np.arange(num_epochs)) / num_epochs
    points = np.minimum(np.arange(N) + first[:, None], np.nextafter(N, 0))  # a sum may be rounded up to N
    return np.searchsorted(ends / ends[-1] * N, points.ravel(), side="right")


def weighted_mean(values: np.ndarray, weights: np.ndarray | None) -> float:
    """Return the average of values (n,), weighted unless the weights are None.

    Example:
        >>> weighted_mean(np.array([1.0, 4.0]), np.array([2.0, 1.0]))
        2.0
    """
    return float(values.mean() if weights is None else np.average(values, weights=weights))
