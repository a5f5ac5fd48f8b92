"""Checks of counts, dense or sparse."""

from typing import Any

import numpy as np

from aevb.matrices import Place, column_label, counted, refuse
from aevb.models import is_sparse

MAX_COUNT = 2**24  # up to which float32 represents whole numbers
ADVICE = "give the number of times each word occurs, for instance from sklearn.feature_extraction.text.CountVectorizer"


def check_counts(X: Any, place: Place) -> None:
    """Refuse values that are not counts: negative, fractional, NaN, infinite, or too large for float32.

    Args:
        X: (N, D), an array or a sparse matrix in CSR format.
        place: Where its rows come from.

    Raises:
        ValueError: The message names the first such value, its row and its column, and what to do.
    """
    if is_sparse(X):
        _check_sparse(X, place)
    else:
        refuse(X, place, _is_no_count, _reason(), ADVICE)


def _is_no_count(x):
    return ~((x >= 0) & (x <= MAX_COUNT) & (x == np.floor(x)))  # also true for NaN


def _reason():
    return f"likelihood='multinomial' expects counts, whole numbers from 0 to {MAX_COUNT:,}"


def _check_sparse(X, place):
    bad = np.flatnonzero(_is_no_count(X.data))
    if len(bad):
        first = bad[0]
        row = int(np.searchsorted(X.indptr, first, side="right")) - 1
        number = row if place.row_numbers is None else place.row_numbers[row]
        raise ValueError(
            f"{place.name}: the value at row {number}, {column_label(int(X.indices[first]), place.columns)} is "
            f"{X.data[first].item()!r} ({counted(len(bad), 'such value')}, rows counted from 0): {_reason()}. "
            f"To fix it: {ADVICE}."
        )
