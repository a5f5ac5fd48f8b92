"""How a user's matrix is read: which likelihood it is for, and what its stored values mean."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from aevb.data.checks import check_columns_vary, check_rows, explained
from aevb.models import LIKELIHOODS


class Reading(NamedTuple):
    """What the training data were taken for."""

    likelihood: str
    scale: float  # what stored bytes are multiplied by


def read_matrix(estimator, X: Any, *, reset: bool, name: str = "X") -> np.ndarray:
    """Return X as a matrix of numbers, with scikit-learn's checks of its form and of its columns' names."""
    with explained(X, name):
        return _numbers(validate_data(estimator, _with_holes(X), reset=reset, **_FORM), name)


def column_names(estimator) -> Sequence[str] | None:
    """Return the names of the columns that an estimator learns from, if they have any."""
    return getattr(estimator, "feature_names_in_", None)


def read_array(X: Any, name: str) -> np.ndarray:
    """Return a matrix of numbers that has columns of its own."""
    with explained(X, name):
        return _numbers(check_array(_with_holes(X), **_FORM), name)


_FORM: dict[str, Any] = {"dtype": "numeric", "ensure_all_finite": False}


def _with_holes(X):
    """Return an array with NaN where it is masked."""
    return X.astype(float).filled(np.nan) if np.ma.is_masked(X) else X


def _numbers(matrix: Any, name) -> np.ndarray:
    dtype = number_type(matrix.dtype)
    if dtype is None:
        raise ValueError(
            f"{name} holds {matrix.dtype}, which are no numbers. Dates can be given as days: "
            "(X - X.min()) / np.timedelta64(1, 'D')."
        )
    return matrix.astype(dtype, copy=False)


def number_type(dtype) -> np.dtype | None:
    """Return as what type numbers of this type are kept; None if they are no numbers."""
    if dtype in (np.bool_, np.uint8, np.float32, np.float64):
        return np.dtype(dtype)
    if dtype.kind not in "iuf":
        return None
    return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)  # JAX would cut 64-bit integers short


def read_training_data(
    X: np.ndarray, likelihood: str, *, any_support: bool, columns: Sequence[str] | None = None
) -> Reading:
    """Decide how X is read, and refuse what the likelihood cannot take.

    Args:
        X: (N, D).
        likelihood: A key of ``LIKELIHOODS``, or ``"auto"``.
        any_support: Whether a decoder of the user's own decides what values are allowed.
        columns: (D,), the columns' names, if they have any.
    """
    if len(X) < 2:
        raise ValueError(f"X has n_samples = {len(X)}; learning needs at least 2 rows.")
    reading = decide(X.dtype, X.min(), X.max(), likelihood)
    check_rows(X, None if any_support else reading.likelihood, scale=reading.scale, columns=columns)
    if LIKELIHOODS[reading.likelihood].density and not any_support:
        check_columns_vary(X.min(axis=0), X.max(axis=0), columns)
    return reading


def decide(dtype, low, high, likelihood: str) -> Reading:
    """Decide how data of this type, between these two numbers, are read."""
    is_bytes = dtype == np.uint8
    if likelihood == "auto":
        likelihood = "bernoulli" if low >= 0 and (high <= 1 or is_bytes) else "gaussian"
    # Bytes are grey levels where values have to lie in [0, 1]; bytes that are all 0 or 1 are that already.
    scale = 1 / 255 if is_bytes and high > 1 and LIKELIHOODS[likelihood].unit_interval else 1.0
    return Reading(likelihood, scale)
