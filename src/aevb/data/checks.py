"""Bad input is refused before any work is done, with the argument, the place, the value, and what to do."""

import numbers
from collections.abc import Iterable

import numpy as np

UNIT_INTERVAL_LIKELIHOODS = ("bernoulli", "sigmoid-gaussian")


def check_rows(X: np.ndarray, likelihood: str, *, scale: float = 1.0) -> None:
    """Check the values of a data matrix for a likelihood.

    Args:
        X: (N, D), numbers.
        likelihood: ``"bernoulli"``, ``"gaussian"`` or ``"sigmoid-gaussian"``.
        scale: What stored values are multiplied by before they are used.

    Raises:
        ValueError: Naming the first bad row and column and its value.
    """
    if np.issubdtype(X.dtype, np.floating):
        _refuse(X, ~np.isfinite(X), "NaN and infinity are not data here", "drop or fill those rows")
        if X.dtype == np.float64:
            limit = np.finfo(np.float32).max
            beyond = (X > limit) | (X < -limit)
            _refuse(X, beyond, "the model computes in float32, whose range it exceeds", "rescale the column")
    if likelihood in UNIT_INTERVAL_LIKELIHOODS and (X.min() < 0 or X.max() * scale > 1):
        outside = (X < 0) | (X * scale > 1)
        advice = "divide pixels by 255, use sklearn.preprocessing.MinMaxScaler, or set likelihood='gaussian'"
        _refuse(X, outside, f"likelihood='{likelihood}' takes values in [0, 1]", advice)


def check_columns_vary(X: np.ndarray) -> None:
    """Refuse a constant column: a Gaussian can make its likelihood there as large as it likes."""
    low, high = X.min(axis=0), X.max(axis=0)
    constant = np.flatnonzero(low == high)
    if constant.size:
        column = constant[0]
        raise ValueError(
            f"X: column {column} is constant (every row has {low[column]!r}; {constant.size} such column(s)). Under a "
            "Gaussian likelihood its density has no bound. Drop it with sklearn.feature_selection.VarianceThreshold()."
        )


def _refuse(X, bad, reason, advice):
    if bad.any():
        row, column = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise ValueError(
            f"X: the value at row {row}, column {column} is {X[row, column]!r} ({int(bad.sum())} such value(s) in all): "
            f"{reason}. What to do: {advice}."
        )


def check_number_type(X) -> None:
    """Refuse a matrix that has entries which are no numbers, naming the first."""
    array = np.asarray(X)
    if array.dtype.kind not in "OUS" or array.ndim != 2:
        return
    for row, values in enumerate(array):
        for column, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"X: the value at row {row}, column {column} is {value!r}, not a number "
                    "(could not convert string to float). Encode categories first, for instance with "
                    "sklearn.preprocessing.OneHotEncoder."
                ) from None


def check_parameter(name: str, value, *, choices: Iterable | None = None, kind=None, low=None, high=None) -> None:
    """Check one constructor argument.

    Args:
        name: Name of the argument.
        value: What was given.
        choices: Allowed values.
        kind: ``int`` or ``float``.
        low: Smallest allowed number.
        high: Largest allowed number.

    Raises:
        ValueError: Saying what was given and what is allowed.
    """
    if choices is not None:
        if value not in choices:
            allowed = ", ".join(repr(choice) for choice in choices)
            raise ValueError(f"{name}={value!r} is not known. Choose one of {allowed}.")
        return
    number = numbers.Integral if kind is int else numbers.Real
    is_number = isinstance(value, number) and not isinstance(value, bool)
    if not is_number or (low is not None and value < low) or (high is not None and value > high):
        wanted = "a whole number" if kind is int else "a number"
        limits = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None)
        raise ValueError(f"{name}={value!r} is not allowed. Give {wanted} of {' and '.join(limits)}.")
