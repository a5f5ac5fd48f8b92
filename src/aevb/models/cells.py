"""The cells of a column of numbers with frequent values: where their edges are, and where numbers lie among them."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

MIN_ROWS = 20  # in a cell
MIN_SHARE = 0.001  # of the rows, of a value with a cell of its own
MAX_VALUES = 32  # that have cells of their own
NUM_QUANTILES = 24  # of the other values; in the tails, the number of rows of a cell is half that of the cell before


class Cells(NamedTuple):
    """Where cells are, in the user's units."""

    edges: tuple[float, ...]
    frequent: tuple[float, ...]  # values that have cells of their own


def find_cells(x: np.ndarray) -> Cells:
    """Return cells that suit numbers (n,): narrow ones around frequent values, quantiles between them.

    The width of a narrow cell is the smallest distance between two values; 1 if all are whole numbers.

    Example:
        >>> x = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0, 40.0], [50, 3, 2, 10, 10, 30])
        >>> find_cells(x)
        Cells(edges=(-0.5, 0.5, 39.5, 40.5), frequent=(0.0, 40.0))
    """
    values, counts = np.unique(x, return_counts=True)
    if len(values) < 2:
        return Cells((float(x.mean()) - 0.5, float(x.mean()) + 0.5) if len(x) else (0.0, 1.0), ())
    is_whole = not np.any(values % 1)
    step = 1.0 if is_whole else max(float(np.diff(values).min()), 1e-9 * (values[-1] - values[0]))
    is_frequent = _frequent(counts, len(x))
    groups = _groups(np.where(is_frequent, 0, counts))
    edges = [values[0] - step / 2]
    for place in range(1, len(values)):
        below, above = values[place - 1], values[place]
        ends = [below + step / 2] * bool(is_frequent[place - 1]) + [above - step / 2] * bool(is_frequent[place])
        if len(ends) == 2 and ends[1] - ends[0] < step:  # nothing lies between them
            ends = [(below + above) / 2]
        elif not ends and groups[place] != groups[place - 1]:
            ends = [np.floor((below + above) / 2) + 0.5 if is_whole else (below + above) / 2]
        edges += ends
    edges.append(values[-1] + step / 2)
    return Cells(tuple(map(float, edges)), tuple(map(float, values[is_frequent])))


def _frequent(counts, num):
    """Return which values have cells of their own."""
    least = max(MIN_ROWS, MIN_SHARE * num)
    if np.count_nonzero(counts >= least) > MAX_VALUES:
        least = max(least, np.sort(counts)[-MAX_VALUES])
    return counts >= least


def _groups(counts):
    """Return the number of the quantile cell of each value, by its rank among those with counts."""
    total = counts.sum()
    if not total:
        return np.zeros(len(counts), int)
    num_groups = max(min(NUM_QUANTILES, int(total // MIN_ROWS)), 1)
    tail = 1 / num_groups
    tails = []
    while tail * total >= 2 * MIN_ROWS:
        tail /= 2
        tails.append(tail)
    levels = np.sort([*np.arange(1, num_groups) / num_groups, *tails, *(1 - np.array(tails))])
    ranks = (np.cumsum(counts) - counts / 2) / total
    return np.searchsorted(levels, ranks)


def to_cells(x: np.ndarray, edges: tuple[float, ...], scale: float) -> np.ndarray:
    """Return the positions of numbers among cells, see :class:`aevb.distributions.Histogram`.

    Example:
        >>> to_cells(np.array([2.0, -4.0, 9.0]), (0.0, 1.0, 5.0), scale=2.0).tolist()
        [1.25, -2.0, 4.0]
    """
    return interpolate(x, edges, np.arange(len(edges)), 1 / scale)


def from_cells(u: np.ndarray, edges: tuple[float, ...], scale: float) -> np.ndarray:
    """Return the numbers at positions.

    Example:
        >>> from_cells(np.array([1.25, -2.0, 4.0]), (0.0, 1.0, 5.0), scale=2.0).tolist()
        [2.0, -4.0, 9.0]
    """
    return interpolate(u, np.arange(len(edges)), edges, scale)


def scores_of(log_shares: tuple[float, ...]) -> np.ndarray:
    """Return the normal scores of the edges of cells: quantiles of N(0, 1) that divide it into these shares.

    Example:
        >>> scores_of(tuple(np.log([0.5, 0.25, 0.25]))).round(3).tolist()
        [0.0, 0.674]
    """
    return ndtri(np.cumsum(np.exp(log_shares))[:-1])


def interpolate(x: np.ndarray, knots: Any, values: Any, slope: float) -> np.ndarray:
    """Return an increasing function of numbers: linear between knots, with the given slope beyond the outer ones.

    Example:
        >>> interpolate(np.array([-1.0, 0.5, 5.0]), (0.0, 1.0), (0.0, 10.0), slope=2.0).tolist()
        [-2.0, 5.0, 18.0]
    """
    beyond = np.minimum(x - knots[0], 0) + np.maximum(x - knots[-1], 0)
    return np.interp(x, knots, values) + slope * beyond


def shares(x: np.ndarray, edges: tuple[float, ...]) -> np.ndarray:
    """Return the shares of numbers in the lower tail, the cells and the upper tail, with half an entry more of each."""
    counts = np.bincount(np.searchsorted(np.asarray(edges), x, side="right"), minlength=len(edges) + 1) + 0.5
    return counts / counts.sum()


def log_density(x: np.ndarray, edges: tuple[float, ...], probabilities: np.ndarray, scale: float) -> np.ndarray:
    """Return the log densities of numbers, given the probabilities of the lower tail, the cells and the upper tail."""
    bounds = np.asarray(edges)
    number, widths = np.searchsorted(bounds, x, side="right"), np.r_[scale, np.diff(bounds), scale]
    beyond = np.maximum(np.maximum(bounds[0] - x, x - bounds[-1]), 0) / scale
    return np.log(probabilities[number]) - np.log(widths[number]) - beyond
