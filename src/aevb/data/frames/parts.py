"""Some rows or columns of a data frame, whichever library it belongs to; and writing it to a file."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from aevb.data.frames.cells import read_cells
from aevb.data.frames.containers import open_frame, series_of

ENDINGS = (".csv", ".parquet")  # of files that frames are written to


def names_of(frame: Any) -> list[str]:
    """Return the names of the columns as text."""
    return [str(name) for name in open_frame(frame).columns]


def take_rows(frame: Any, rows: np.ndarray) -> Any:
    """Return rows of a frame, in this order, numbered from 0.

    Example:
        >>> import polars as pl
        >>> take_rows(pl.DataFrame({"a": [5, 6, 7]}), np.array([2, 0])).rows()
        [(7,), (5,)]
    """
    taken = open_frame(frame)[np.asarray(rows)].to_native()
    return taken.reset_index(drop=True) if hasattr(taken, "reset_index") else taken


def without_columns(frame: Any, names: Collection[str | None]) -> Any:
    """Return a frame without the columns of these names; None, and those that it does not have, are ignored."""
    opened = open_frame(frame)
    return opened.select([name for name in opened.columns if str(name) not in names]).to_native()


def with_columns(frame: Any, other: Any) -> Any:
    """Return a frame in which the columns of another one, with the same rows, replace those of their names."""
    opened, given = open_frame(frame), open_frame(other)
    return opened.with_columns(*(given[name] for name in given.columns)).to_native()


def with_empty_columns(frame: Any, names: Sequence[str]) -> Any:
    """Return a frame with additional columns, all of whose entries are missing."""
    return open_frame(frame).with_columns(**{name: nw.lit(None, nw.Float64) for name in names}).to_native()


def complete_rows(frame: Any) -> np.ndarray:
    """Return which rows have no missing entry, (n,)."""
    missing = [read_cells(series, name).missing for name, series in series_of(open_frame(frame)).items()]
    return ~np.any(missing, axis=0)


def labels_of(frame: Any, name: str) -> np.ndarray:
    """Return a column as labels (n,): numbers if it has only numbers, else text, "missing" where there is none.

    Example:
        >>> import polars as pl
        >>> labels_of(pl.DataFrame({"sex": ["F", None]}), "sex").tolist()
        ['F', 'missing']
    """
    series = series_of(open_frame(frame))[name]
    values = series.to_list()
    missing = series.is_null().to_list()
    if series.dtype.is_numeric() and not any(missing):
        return np.asarray(values)
    return np.array(["missing" if hole else str(value) for value, hole in zip(values, missing, strict=True)])


def write_frame(frame: Any, path: Path, ending: str) -> None:
    """Write a frame as CSV or Parquet (`ending`), without an index.

    Numbers are written with all their digits, dates as 2024-12-31, missing entries as empty cells.
    """
    opened = open_frame(frame)
    opened.write_parquet(path) if ending == ".parquet" else opened.write_csv(path)
