"""How many state variables a linear state-space model of some sequences needs."""

from collections.abc import Sequence

import numpy as np

MAX_LAGS = 20  # steps of the past and the future that are compared
ROWS_PER_LAG = 10  # values of a column, at least
MAX_STEPS = 5_000  # of all sequences together, the first ones of each


def state_dim(sequences: Sequence[np.ndarray], inputs: Sequence[np.ndarray] | None = None) -> int:
    r"""Return the number of state variables through which the past of sequences tells about their future.

    .. math:: \arg\min_J \; \rho_{J+1}^2 + 2 J D \log(N) / N

    with :math:`\rho_1 \ge \rho_2 \ge \dots` the correlations of the canonical variates of past and future, and N the
    number of steps (Bauer, "Order estimation for subspace methods", 2001, section 4). It needs no fit.

    Args:
        sequences: Values (T_i, D); missing ones are set to the mean of their column.
        inputs: What is known of each step beside them, (T_i, U): effects of it are removed by regression.

    Example:
        >>> rng, z, x = np.random.default_rng(0), np.zeros(2), []
        >>> for _ in range(500):
        ...     z = 0.98 * np.array([[0.9, 0.4], [-0.4, 0.9]]) @ z + rng.normal(size=2)
        ...     x.append(z[:1] + rng.normal(size=1))
        >>> state_dim([np.array(x)])
        2
    """
    most = max(MAX_STEPS // len(sequences), 1)
    sequences = [rows[:most] for rows in sequences]
    rows = np.concatenate(sequences)
    known = np.ones((len(rows), 1))
    if inputs is not None:
        known = np.column_stack([known, np.concatenate([u[:most] for u in inputs])])
    D, known = rows.shape[1], np.where(np.isfinite(known), known, 0)
    for column in rows.T:  # views of a copy
        there = np.isfinite(column)
        column[there] -= known[there] @ np.linalg.lstsq(known[there], column[there], rcond=None)[0]
    rows = np.where(np.isfinite(rows), rows, 0)
    lags = int(np.clip(len(rows) // (ROWS_PER_LAG * D), 1, MAX_LAGS))
    pairs, first = [], 0
    for length in map(len, sequences):
        part = rows[first : first + length]
        pairs += [(part[t - lags : t].ravel(), part[t : t + lags].ravel()) for t in range(lags, length - lags + 1)]
        first += length
    if len(pairs) <= 2 * lags * D:
        return 1
    past, future = (_orthonormal(np.array(part)) for part in zip(*pairs, strict=True))
    squares = np.append(np.linalg.svd(past.T @ future, compute_uv=False) ** 2, 0)
    return int(np.argmin(squares + 2 * D * np.arange(len(squares)) * np.log(len(rows)) / len(rows)))


def _orthonormal(rows):
    """Return an orthonormal basis of the centred columns."""
    left, size, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    return left[:, size > 1e-9 * max(size[0], 1e-300)]
