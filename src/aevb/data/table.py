"""An open data file: a table whose rows are read in pieces."""

import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from aevb.data.csv_file import CsvError
from aevb.errors import DataFileError
from aevb.matrices import block_rows, number_type


class Table(NamedTuple):
    """Rows of one file, not read yet.

    Args:
        name: The file, for messages.
        num_rows: N.
        num_columns: D.
        dtype: Type of the rows that are read.
        read: ``read(start, stop, size)`` yields these rows in order, in arrays of at most `size` rows; an array is
            valid until the next one is requested.
        cuts: Rows at which reading may start: (0, ..., N). None: any row.
        columns: The column names, if there are any.
        image_shape: (height, width) if a row is an image.
        first_row: Index of its first row in the file, if it is a part of one.
        fetch: Brings the file near; None if it is.
    """

    name: str
    num_rows: int
    num_columns: int
    dtype: np.dtype
    read: Callable[[int, int, int], Iterator[np.ndarray]]
    cuts: tuple[int, ...] | None = None
    columns: tuple[str, ...] | None = None
    image_shape: tuple[int, ...] | None = None
    first_row: int = 0
    fetch: Callable[[], Any] | None = None

    def part(self, first: int, stop: int) -> "Table":
        """Return the rows from `first` to `stop` as a table; what can only be read as a whole is, and cut."""
        if (first, stop) == (0, self.num_rows):
            return self
        cuts, whole = self.cuts, self.read

        def read(start, end, size):
            start, end = start + first, end + first
            begin = start if cuts is None else max(cut for cut in cuts if cut <= start)
            finish = end if cuts is None else min(cut for cut in cuts if cut >= end)
            for rows in whole(begin, finish, size):
                yield rows[max(start - begin, 0) : max(end - begin, 0)]
                begin += len(rows)
                if begin >= end:
                    return

        inner = None if cuts is None else (0, *(cut - first for cut in cuts if first < cut < stop), stop - first)
        return self._replace(read=read, num_rows=stop - first, cuts=inner, first_row=self.first_row + first)

    def minus(self, offset: np.ndarray | None) -> "Table":
        """Return the table with a number (D,) subtracted from each column, in float64; None for 0."""
        if offset is None:
            return self
        read = self.read
        return self._replace(
            read=lambda start, stop, size: (rows - offset for rows in read(start, stop, size)), dtype=np.dtype(float)
        )


class SomeRows(NamedTuple):
    """Tables without some of their rows, which are held out: data for `fit`."""

    tables: list[Table]
    left_out: np.ndarray  # indices of those rows, counted over all tables, ascending


class NamedColumns(NamedTuple):
    """Rows from a file whose columns have names: data for `fit`."""

    data: Any  # an array (N, D), or a DynamicBinarization
    columns: Sequence[str]  # (D,)


def array_table(name: str, X: np.ndarray, **facts) -> Table:
    """Return rows in memory, (N, D), as a table; its other fields are keyword arguments."""

    def read(start, stop, size):
        yield from (X[first : min(first + size, stop)] for first in range(start, stop, size))

    num_rows, num_columns = X.shape
    return Table(name, num_rows, num_columns, X.dtype, read, cuts=(0, num_rows), **facts)


def rows_between(tables: list[Table], first: int, stop: int) -> list[Table]:
    """Return some rows of tables, counted over all of them, as tables."""
    found, seen = [], 0
    for table in tables:
        start, end = max(first - seen, 0), min(stop - seen, table.num_rows)
        if start < end:
            found.append(table.part(start, end))
        seen += table.num_rows
    return found


def blocks(tables: list[Table]) -> Iterator[tuple[Table, int, np.ndarray]]:
    """Yield all rows in order, in blocks: the table, the index of the block's first row in its file, and its rows."""
    for table in tables:
        first = table.first_row
        # Between two cuts at a time, so that memory is released now and then.
        step = 16 * block_rows(table.num_columns)
        cuts = table.cuts or (*range(0, table.num_rows, step), table.num_rows)
        for start, stop in pairwise(cuts):
            for rows in table.read(start, stop, block_rows(table.num_columns)):
                yield table, first, rows
                first += len(rows)


def stored_type(dtype, name) -> np.dtype:
    """Return the type in which the numbers of a file are stored; refuse anything that is not a number."""
    number = number_type(dtype)
    if number is None:
        raise DataFileError(f"{name} contains {dtype}, not numbers. Save X.astype('float32') or bytes instead.")
    return number


@contextmanager
def reading(path, how):
    """Turn the exceptions that readers raise for a damaged file into an error that names it."""
    try:
        yield
    except DataFileError:
        raise
    except CsvError as error:
        raise DataFileError(f"{path}: {error}") from None
    except (IsADirectoryError, PermissionError, FileNotFoundError) as error:
        raise DataFileError(f"{path} cannot be read: {error.strerror}. Give a readable file.") from error
    except _DAMAGE as error:
        reason = str(error) or type(error).__name__
        advice = f"It may be truncated (it has {os.path.getsize(path):,} bytes). Write it again with {how}"
        reason = " ".join(reason.split())  # one line
        if "pickle" in reason or "Python objects" in reason:
            reason = "it contains Python objects, which are never unpickled"
            advice = "Save numbers, X.astype('float32'), with " + how
        raise DataFileError(f"{path} cannot be read: {reason}. {advice}.") from error


# What NumPy, zipfile and pyarrow raise for damaged files.
_DAMAGE = (
    OSError, ValueError, EOFError, KeyError, SyntaxError, RuntimeError, OverflowError, MemoryError, struct.error,
    tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
