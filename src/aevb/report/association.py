"""How strongly the columns of a table depend on each other, two at a time."""

import numpy as np
from scipy.stats import rankdata


def association(values: np.ndarray, are_labels: np.ndarray) -> np.ndarray:
    r"""Return the association of each pair of columns, (D, D), NaN where it is not defined.

    It is Spearman's correlation of two columns of numbers, from -1 to 1; Cramér's V of two columns of labels, and the
    correlation ratio of the ranks of numbers between labels, both from 0 to 1:

    .. math:: V = \sqrt{\frac{\chi^2 / n}{\min(r, c) - 1}}, \qquad
        \eta = \sqrt{\frac{\sum_k n_k (\bar y_k - \bar y)^2}{\sum_i (y_i - \bar y)^2}}

    Ranks rather than numbers, so that a few large ones do not decide. Rows in which one of the two entries is missing
    are left out.

    Args:
        values: (n, D), numbers and codes of labels, NaN where missing.
        are_labels: (D,), which columns hold labels.

    Example:
        >>> x = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 1.0], [5.0, 1.0]])
        >>> association(x, np.array([False, True])).round(3).tolist()
        [[1.0, 0.894], [0.894, 1.0]]
    """
    num_columns = values.shape[1]
    found = np.eye(num_columns)
    for one in range(num_columns):
        for other in range(one):
            x, y = values[:, one], values[:, other]
            seen = ~np.isnan(x) & ~np.isnan(y)
            found[one, other] = found[other, one] = _of_pair(x[seen], y[seen], are_labels[one], are_labels[other])
    return found


def _of_pair(x, y, x_is_label, y_is_label):
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan
    if x_is_label and y_is_label:
        return cramers_v(x, y)
    if x_is_label or y_is_label:
        return correlation_ratio(*((y, x) if x_is_label else (x, y)))
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def cramers_v(x: np.ndarray, y: np.ndarray) -> float:
    """Return Cramér's V of two columns of labels (n,), each with at least two different ones."""
    table = np.histogram2d(_codes(x), _codes(y), bins=(int(_codes(x).max()) + 1, int(_codes(y).max()) + 1))[0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / len(x)
    chi_square = np.sum((table - expected) ** 2 / expected)
    return float(np.sqrt(chi_square / len(x) / (min(table.shape) - 1)))


def correlation_ratio(numbers: np.ndarray, labels: np.ndarray) -> float:
    """Return the correlation ratio of the ranks of numbers (n,) between labels (n,)."""
    ranks, codes = rankdata(numbers), _codes(labels)
    counts = np.bincount(codes)
    means = np.bincount(codes, ranks) / counts
    between = np.sum(counts * (means - ranks.mean()) ** 2)
    return float(np.sqrt(between / np.sum((ranks - ranks.mean()) ** 2)))


def mean_absolute_difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return the mean absolute difference of two matrices (D, D) over the pairs of columns; NaN if there are none."""
    pairs = np.tril_indices(len(one), -1)
    differences = np.abs(one - other)[pairs]
    return float(np.nanmean(differences)) if np.isfinite(differences).any() else float("nan")


def _codes(labels):
    return np.unique(labels, return_inverse=True)[1]
