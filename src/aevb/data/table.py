"""What a data file is once it is open: a table whose rows are read a piece at a time."""

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

_BLOCK_BYTES = 16_000_000  # data are looked at in blocks, so that a check does not need the memory of a copy


class Table(NamedTuple):
    """Rows of one file, none of which are read yet.

    Args:
        name: The file, for messages.
        num_rows: N.
        num_columns: D.
        dtype: Of the rows as they are given.
        read: ``read(start, stop, size)`` gives these rows in order, in arrays of at most `size` rows; an array is valid
            until the next one is asked for.
        cuts: Rows at which reading may start: (0, ..., N). None: at any.
        columns: Names of the columns, if they have any.
        image_shape: (height, width) if a row is an image.
    """

    name: str
    num_rows: int
    num_columns: int
    dtype: np.dtype
    read: Callable[[int, int, int], Iterator[np.ndarray]]
    cuts: tuple[int, ...] | None = None
    columns: tuple[str, ...] | None = None
    image_shape: tuple[int, int] | None = None

    def minus(self, offset: np.ndarray | None) -> "Table":
        """Return the table with a number (D,) subtracted from each column, in float64; None for 0."""
        if offset is None:
            return self
        read = self.read
        return self._replace(
            read=lambda start, stop, size: (rows - offset for rows in read(start, stop, size)), dtype=np.dtype(float)
        )


class SomeRows(NamedTuple):
    """Tables without some of their rows, which are kept aside for other uses: data for `fit`."""

    tables: list[Table]
    left_out: np.ndarray  # numbers of those rows, counted over all tables, ascending


class NamedColumns(NamedTuple):
    """Rows that come from a file whose columns have names: data for `fit`."""

    data: Any  # an array (N, D), or a DynamicBinarization
    columns: Sequence[str]  # (D,)


def array_table(name: str, X: np.ndarray, **facts) -> Table:
    """Return rows that are in memory, (N, D), as a table; other fields of it as keywords."""

    def read(start, stop, size):
        yield from (X[first : min(first + size, stop)] for first in range(start, stop, size))

    num_rows, num_columns = X.shape
    return Table(name, num_rows, num_columns, X.dtype, read, cuts=(0, num_rows), **facts)


def blocks(tables: list[Table]) -> Iterator[tuple[Table, int, np.ndarray]]:
    """Give all rows in order: the table, the number of the first row in it, and some rows."""
    for table in tables:
        first = 0
        # Between two cuts at a time, so that what was read is given back now and then.
        step = 16 * block_rows(table.num_columns)
        cuts = table.cuts or (*range(0, table.num_rows, step), table.num_rows)
        for start, stop in pairwise(cuts):
            for rows in table.read(start, stop, block_rows(table.num_columns)):
                yield table, first, rows
                first += len(rows)


def block_rows(num_columns: int) -> int:
    """Return how many rows are looked at at a time."""
    return max(_BLOCK_BYTES // (8 * num_columns), 1)


def number_type(dtype) -> np.dtype | None:
    """Return as what type numbers of this type are kept; None if they are no numbers."""
    if dtype in (np.bool_, np.uint8, np.float32, np.float64):
        return np.dtype(dtype)
    if dtype.kind not in "iuf":
        return None
    return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)  # JAX would cut 64-bit integers short


def stored_type(dtype, name) -> np.dtype:
    """Return as what type the numbers of a file are kept; refuse what are no numbers."""
    number = number_type(dtype)
    if number is None:
        raise DataFileError(f"{name} holds {dtype}, which are no numbers. Save X.astype('float32') or bytes instead.")
    return number


@contextmanager
def reading(path, how):
    """Turn what readers raise at a damaged file into an error that names it."""
    try:
        yield
    except DataFileError:
        raise
    except CsvError as error:
        raise DataFileError(f"{path}: {error}") from None
    except (IsADirectoryError, PermissionError, FileNotFoundError) as error:
        raise DataFileError(f"{path} cannot be read: {error.strerror}. Give a file that can be.") from error
    except _DAMAGE as error:
        reason = str(error) or type(error).__name__
        advice = f"It may be truncated (it has {os.path.getsize(path):,} bytes). Write it again with {how}"
        reason = " ".join(reason.split())  # one line
        if "pickle" in reason or "Python objects" in reason:
            reason = "it does not hold numbers alone, and Python objects are never unpickled"
            advice = "Save numbers, X.astype('float32'), with " + how
        raise DataFileError(f"{path} cannot be read: {reason}. {advice}.") from error


# What NumPy, zipfile and pyarrow raise at damaged files.
_DAMAGE = (
    OSError, ValueError, EOFError, KeyError, SyntaxError, RuntimeError, OverflowError, MemoryError, struct.error,
    tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
