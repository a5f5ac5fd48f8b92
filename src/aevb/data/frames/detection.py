"""Whether data are a table, whose columns need families of their own, or a plain matrix of numbers."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aevb.data.frames.containers import is_frame, open_frame, series_of
from aevb.data.frames.files import read_frame
from aevb.data.frames.likelihoods import ALIASES, AUTO, KINDS
from aevb.errors import DataFileError
from aevb.models import NAMED_LIKELIHOODS

COLUMN_KINDS = tuple(kind for kind in (*KINDS, *ALIASES) if kind not in NAMED_LIKELIHOODS)
MAX_FILE_BYTES = 2**28  # larger files are read in pieces, as matrices


def as_table(X: Any, likelihood: Any) -> Any:
    """Return data as a frame if they are a table, else None.

    They are a table if the likelihood speaks of columns, or if a frame, a file or an array contains anything but
    complete columns of numbers: labels, dates, missing entries.

    Args:
        X: What `fit` was given.
        likelihood: Its argument: a name, or names by column.

    Example:
        >>> as_table(np.ones((2, 2)), "auto") is None
        True
        >>> as_table(np.array([[1.0, np.nan]]), "auto").shape
        (1, 2)
    """
    if isinstance(likelihood, str) and likelihood not in (AUTO, *KINDS, *ALIASES):
        return None  # one family for whole rows
    speaks_of_columns = isinstance(likelihood, Mapping) or likelihood in COLUMN_KINDS
    frame = _frame_of(X)
    if frame is None:
        return None
    return frame if speaks_of_columns or not is_plain(frame) else None


def frame_of(X: Any) -> Any:
    """Return rows for a model of a table as a frame; anything that is neither a frame, a file nor a matrix as it is."""
    found = _frame_of(X)
    return X if found is None else found


def _frame_of(X):
    if is_frame(X):
        return X
    if isinstance(X, str | os.PathLike):
        return _frame_in(Path(X))
    if isinstance(X, np.ma.MaskedArray):
        X = np.where(np.ma.getmaskarray(X), np.nan, X.data)
    if isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.dtype == object):
        X = _as_numbers(X)
    if not isinstance(X, np.ndarray) or isinstance(X, np.memmap):
        return None
    return X if X.ndim == 2 and X.size and X.dtype.kind in "fiub" else None


def _as_numbers(X):
    """Return rows of numbers, with None or NaN where they are missing, as an array; None if they are something else."""
    try:
        return np.array(X, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None  # reading it as a matrix says what is wrong


def _frame_in(path):
    """Return a file of a table as a frame; None for other files, and for those that cannot be read as one."""
    name = path.name.lower().removesuffix(".gz")
    if not name.endswith((".csv", ".tsv", ".parquet")) or not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
        return None
    try:
        return read_frame(path)
    except (DataFileError, ModuleNotFoundError, ValueError):
        return None  # reading it as a matrix says what is wrong


def is_plain(frame: Any) -> bool:
    """Whether a frame has nothing but complete columns of numbers."""
    if isinstance(frame, np.ndarray):
        return frame.dtype.kind != "f" or not np.isnan(frame).any()
    series = series_of(open_frame(frame))
    return all(column.dtype.is_numeric() and not _has_holes(column) for column in series.values())


def _has_holes(column):
    if column.is_null().any():
        return True
    return bool(column.dtype.is_float() and column.is_nan().any())
