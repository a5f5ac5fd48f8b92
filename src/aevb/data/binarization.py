"""How grey levels become binary data. Grey, static, dynamic and thresholded MNIST are four different data sets."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from aevb.arguments import check_parameter
from aevb.data.checks import check_rows
from aevb.data.kinds import are_grey_levels, look_binary, sample_rows
from aevb.matrices import read_array


class DynamicBinarization(NamedTuple):
    """Grey levels from which `fit` makes new binary draws each time it reads them.

    A pixel is 1 with a probability equal to its grey level. The draws are made inside the compiled step, from the run's
    key: each epoch has different draws. Rows that `fit` holds out are drawn once.

    Args:
        levels: (N, D), in [0, 1], or bytes k/255.
    """

    levels: np.ndarray


def levels_of(X: Any) -> Any:
    """Return the grey levels of binary draws, and other data unchanged."""
    return X.levels if isinstance(X, DynamicBinarization) else X


def binarize(X, how: str, seed: int | Sequence[int] = 0) -> Any:
    """Return grey levels as the data that a model is trained on.

    ============= ==================================================================
    how           result
    ============= ==================================================================
    "grey"        X unchanged
    "static"      each pixel is 1 with the probability of its grey level, drawn once
    "dynamic"     the same, redrawn each time a row is read: only for `fit`
    "threshold"   1 where the grey level is above one half
    ============= ==================================================================

    Args:
        X: (N, D), in [0, 1], or bytes k/255.
        how: A key of ``BINARIZATIONS``.
        seed: Seed of the static draw.

    Returns:
        (N, D) bytes of 0 and 1; for ``"dynamic"`` a :class:`DynamicBinarization`, for ``"grey"`` X.

    Raises:
        ValueError: X is not in [0, 1], or `how` is unknown.

    Example:
        >>> binarize(np.array([[0.2, 0.7, 1.0]]), "threshold")
        array([[0, 1, 1]], dtype=uint8)
    """
    check_parameter("binarization", how, choices=BINARIZATIONS)
    if how != "grey":
        X = read_array(X, "X")
        check_rows(X, "bernoulli", scale=level_scale(X))
    return BINARIZATIONS[how](X, seed)


def level_scale(X: np.ndarray) -> float:
    """Return the factor for stored grey levels: bytes above 1 mean k/255."""
    return 1 / 255 if X.dtype == np.uint8 and X.max() > 1 else 1.0


def kind_of(X: np.ndarray) -> str:
    """Return the kind of data: "binary" (0 and 1), "grey" (levels in [0, 1], or bytes) or "none" (other numbers)."""
    low, high, sample = X.min(), X.max(), sample_rows(X)
    if np.isin((low, high), (0, 1)).all() and np.isin(X, (0, 1)).all():
        return "binary"
    are_levels = are_grey_levels(sample, low, high)
    if X.dtype == np.uint8:
        return "grey" if are_levels else "none"
    return "grey" if low >= 0 and high <= 1 and (are_levels or look_binary(sample, are_levels)) else "none"


def _static(X, seed):
    generator, scale = np.random.default_rng(seed), np.float32(level_scale(X))
    drawn = np.empty(X.shape, np.uint8)
    for start in range(0, len(X), 1000):  # in blocks: uniform numbers take more memory than bytes
        rows = X[start : start + 1000]
        drawn[start : start + 1000] = generator.random(rows.shape, np.float32) < rows * scale
    return drawn


# Functions of grey levels and a seed, by name.
BINARIZATIONS: dict[str, Callable[[np.ndarray, Any], Any]] = {
    "grey": lambda X, seed: X,
    "static": _static,
    "dynamic": lambda X, seed: DynamicBinarization(X),
    "threshold": lambda X, seed: (X * np.float32(level_scale(X)) > 0.5).astype(np.uint8),
}
