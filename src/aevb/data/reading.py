"""How a user's matrix is interpreted: which likelihood suits it, and what its stored values mean."""

import os
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import validate_data

from aevb.data.checks import are_constant, check_columns_vary, check_rows
from aevb.data.image_arrays import flat_images
from aevb.data.kinds import are_grey_levels, choose_likelihood, discrete_columns, sample_rows
from aevb.data.remote import nearby
from aevb.data.table import blocks
from aevb.data.tables import open_tables
from aevb.matrices import read_array
from aevb.models import CUSTOM, LIKELIHOODS, is_sparse


class Reading(NamedTuple):
    """How the training data are interpreted."""

    likelihood: str  # a key of LIKELIHOODS, or CUSTOM
    scale: float  # what stored bytes are multiplied by
    reason: str = ""  # why this likelihood was chosen; empty if the user chose it
    are_levels: bool = False  # whether all columns are in the same unit, like pixels


def read_matrix(estimator, X: Any, *, reset: bool, name: str = "X") -> np.ndarray:
    """Return X as a matrix of numbers, with scikit-learn's checks of its shape and its column names.

    Columns with names, of a data frame or a file, are reordered to match the training data.

    Args:
        estimator: The estimator whose number and names of columns are set or compared.
        X: An array, a data frame, or the path of a data file or folder; for a likelihood of counts also a sparse
            matrix, which is returned in CSR format.
        reset: Whether to set them.
        name: Name of the argument, for messages.
    """
    columns, X = None, X if reset else flat_images(estimator, X, reset=False, name=name)
    if isinstance(X, str | os.PathLike):
        X, columns = read_path(X)
    elif not reset:
        X = _frame_in_order(X, column_names(estimator), name)
    if not reset and columns is not None and (known := column_names(estimator)) is not None:
        X = X[:, places_of(known, columns, name)]
    is_frame = hasattr(X, "columns")
    with warnings.catch_warnings():
        if not getattr(estimator, "_learned_from_a_frame", False):  # but from a file: arrays have its column order
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        accepts = {"accept_sparse": "csr"} if is_sparse(X) and _models_counts(estimator) else {}
        matrix: Any = read_array(X, name, partial(validate_data, estimator, reset=reset, **accepts))
    if is_sparse(matrix) and not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if reset:
        estimator._learned_from_a_frame = is_frame
        set_column_names(estimator, columns)
    return matrix


def _models_counts(estimator):
    kind = LIKELIHOODS.get(getattr(estimator, "likelihood", ""))
    return kind is not None and kind.counts


def read_path(path) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Return all rows of a data file or folder, and the column names."""
    tables = open_tables(nearby(path))
    return np.concatenate([block.copy() for _, _, block in blocks(tables)]), tables[0].columns


def _frame_in_order(X, known, name):
    """Return a data frame with its columns in the order of the known ones; anything else unchanged."""
    columns = list(getattr(X, "columns", ()))
    if known is None or not columns or not all(isinstance(column, str) for column in columns) or columns == list(known):
        return X
    places_of(known, columns, name)
    return X[list(known)]


def places_of(known: Sequence[str], columns: Sequence[str], name: str = "X") -> list[int]:
    """Return the position of each known column.

    Raises:
        ValueError: Columns are missing, unknown or repeated; the message names them.

    Example:
        >>> places_of(["a", "b"], ["b", "a"])
        [1, 0]
    """
    columns, known = list(columns), list(known)
    missing = [column for column in known if column not in columns]
    unknown = [column for column in columns if column not in known]
    twice = [column for column in columns if columns.count(column) > 1]
    if missing or unknown or twice:
        wrong = {"lacks": missing, "has in addition": unknown, "has more than once": list(dict.fromkeys(twice))}
        said = "; it ".join(f"{what} {_named(which)}" for what, which in wrong.items() if which)
        raise ValueError(
            f"{name} {said}. The feature names that the model learned from are {_named(known)}: give these columns, in "
            "any order, and no others."
        )
    return [columns.index(column) for column in known]


def _named(columns, most=10):
    return ", ".join(map(repr, columns[:most])) + f", ... ({len(columns)} in all)" * (len(columns) > most)


def column_names(estimator) -> Sequence[str] | None:
    """Return the names of the columns that an estimator was fitted to, if they have names."""
    return getattr(estimator, "feature_names_in_", None)


def set_table_columns(estimator, table) -> None:
    """Store the number and the names of a table's columns as scikit-learn does; a matrix has no names."""
    estimator.n_features_in_, estimator._learned_from_a_frame = len(table.names), table.container != "numpy"
    vars(estimator).pop("feature_names_in_", None)
    if estimator._learned_from_a_frame and all(isinstance(name, str) for name in table.names):
        set_column_names(estimator, table.names)


def set_column_names(estimator, columns: Sequence[str] | None) -> None:
    """Store the column names of a file as scikit-learn stores those of a data frame."""
    if columns is not None:
        estimator.feature_names_in_ = np.asarray(columns, dtype=object)


def read_training_data(
    X: np.ndarray,
    likelihood: str,
    *,
    own_decoder: bool = False,
    columns: Sequence[str] | None = None,
    row_numbers: np.ndarray | None = None,
) -> Reading:
    """Decide how X is interpreted, refuse values outside the likelihood's range, and warn about discrete columns.

    Args:
        X: (N, D).
        likelihood: A key of ``LIKELIHOODS``, or ``"auto"``.
        own_decoder: Whether a user-defined decoder decides which values are allowed.
        columns: (D,), the column names, if there are any.
        row_numbers: (N,), the indices of the rows in the user's data, if not 0, 1, ...
    """
    if X.shape[0] < 2:
        raise ValueError(f"X has n_samples = {X.shape[0]}; training needs at least 2 rows.")
    if likelihood != "auto" and LIKELIHOODS[likelihood].counts and not own_decoder:
        check_rows(X, likelihood, columns=columns)
        return Reading(likelihood, 1.0)
    sample = sample_rows(X)
    reading = decide(sample, X.min(), X.max(), likelihood, own_decoder=own_decoder)
    check_rows(X, reading.likelihood, scale=reading.scale, columns=columns, row_numbers=row_numbers)
    check_density(reading, X.min(axis=0), X.max(axis=0), sample, columns)
    return reading


def decide(sample: np.ndarray, low, high, likelihood: str, *, own_decoder: bool = False) -> Reading:
    """Decide how data are interpreted.

    Args:
        sample: Rows (n, D) from all parts of the data.
        low: The smallest value in all data.
        high: The largest.
        likelihood: A key of ``LIKELIHOODS``, or ``"auto"``.
        own_decoder: See :func:`read_training_data`.
    """
    are_levels, reason = are_grey_levels(sample, low, high), ""
    if likelihood == "auto" and not own_decoder:
        likelihood, reason = choose_likelihood(sample, low, high, are_levels)
    # Bytes that are all 0 or 1 are already in [0, 1].
    needs_levels = are_levels or (likelihood != "auto" and LIKELIHOODS[likelihood].unit_interval)
    scale = 1 / 255 if sample.dtype == np.uint8 and high > 1 and needs_levels else 1.0
    return Reading(CUSTOM if own_decoder else likelihood, scale, reason, are_levels)


def check_density(reading: Reading, low: np.ndarray, high: np.ndarray, sample: np.ndarray, columns=None) -> None:
    """If the likelihood is a density, refuse constant columns and warn about those that take few values.

    Images may have constant pixels: all pixels share one unit, which keeps the variance away from 0.

    Args:
        reading: How the data are interpreted.
        low: (D,), the smallest value of each column.
        high: (D,), the largest.
        sample: Rows (n, D) from all parts of the data.
        columns: (D,), the column names, if there are any.
    """
    kind = LIKELIHOODS[reading.likelihood]
    if not kind.density or reading.likelihood == CUSTOM:
        return
    if are_constant(low, high).all() or not (reading.are_levels or kind.unit_interval):
        check_columns_vary(low, high, columns)
    found = discrete_columns(sample)
    if found.size > (sample.shape[1] // 2 if reading.are_levels else 0):  # some pixels of photographs hardly vary
        names = ", ".join(repr(str(number if columns is None else columns[number])) for number in found[:5])
        more = ", ..." if found.size > 5 else ""
        instead = "Use likelihood='bernoulli', which suits ink on paper" if reading.are_levels else "Leave them out"
        instead = "Add" if found.size == sample.shape[1] and not reading.are_levels else f"{instead}, or add"
        warnings.warn(
            f"X: {found.size} of {sample.shape[1]} columns ({names}{more}) take few values, and likelihood="
            f"{reading.likelihood!r} is a density, unbounded there: score and log_likelihood mean little. "
            f"{instead} noise to them in Python before training: aevb.data.dequantize(X).",
            UserWarning,
            stacklevel=2,
        )
