"""Weights of rows, as scikit-learn's `sample_weight`: a row with weight 3 counts as three rows."""

import warnings
from typing import Any, NamedTuple

import numpy as np

from aevb.errors import WrongTypeError, shown
from aevb.matrices import counted

FEW = 0.1  # a sum of weights below this share of the rows: they were probably normalized


class Used(NamedTuple):
    """The rows with weights above 0."""

    X: np.ndarray  # (n, D)
    weights: np.ndarray | None  # (n,); None: they are all 1
    numbers: np.ndarray | None  # (n,), their indices in the data; None: all


def used_rows(X: np.ndarray, sample_weight: Any) -> Used:
    """Return the rows of X (N, D) with weights above 0; all rows without weights.

    Weights of 0 and 1 only leave out rows: the rest is computed as if there were no weights, bit for bit.

    Raises:
        ValueError: The weights are not valid, see :func:`read_weights`, or only one of them is above 0.
    """
    if sample_weight is None:
        return Used(X, None, None)
    weights = read_weights(sample_weight, len(X))
    numbers = np.flatnonzero(weights)
    if len(numbers) < 2:
        raise ValueError("sample_weight: only one row has a weight above 0, but training needs at least 2 rows.")
    if (total := weights.sum()) < FEW * len(numbers):
        warnings.warn(
            f"sample_weight: the weights of {len(numbers):,} rows sum to {total:.3g}, and the prior on the parameters "
            "counts them as that many. If the weights were normalized, multiply them so that they sum to the number of "
            "rows.",
            UserWarning,
            stacklevel=5,
        )
    are_one = (weights[numbers] == 1).all()
    return Used(X if len(numbers) == len(X) else X[numbers], None if are_one else weights[numbers], numbers)


def read_weights(sample_weight: Any, num_rows: int) -> np.ndarray:
    """Return the weights of rows as numbers, (n,).

    Args:
        sample_weight: (n,), what the user gave: finite numbers, at least 0, and not all 0.
        num_rows: n.

    Raises:
        ValueError: The message says what was given and what is allowed.
    """
    allowed = f"Give one number for each of the {counted(num_rows, 'row')}, at least 0."
    try:
        weights = np.array(sample_weight, np.float64)  # a copy, which nobody else changes
    except (TypeError, ValueError):
        raise WrongTypeError(f"sample_weight={shown(sample_weight)} is not an array of numbers. {allowed}") from None
    if weights.shape != (num_rows,):
        raise ValueError(f"sample_weight has shape {weights.shape}, not {(num_rows,)}. {allowed}")
    is_bad = ~(np.isfinite(weights) & (weights >= 0))
    if is_bad.any():
        row, count = int(np.argmax(is_bad)), counted(int(is_bad.sum()), "such weight")
        raise ValueError(f"sample_weight: row {row} has {weights[row]} ({count}, rows counted from 0). {allowed}")
    if not weights.any():
        raise ValueError("sample_weight: all weights are zero. Give at least some rows a weight above 0.")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise ValueError("sample_weight: the sum of the weights is infinite. Divide them by a large number.")
    return weights
