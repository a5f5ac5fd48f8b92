"""Data files as tables: what is in a `.npy`, `.npz`, `.csv` or Parquet file, and how rows are read a piece at a time.

Nothing is unpickled: a file with Python objects is refused.
"""

import math
import mmap
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aevb.data.csv_file import CsvError, read_csv
from aevb.data.reading import number_type
from aevb.errors import no_column


class DataFileError(ValueError):
    """A data file that cannot be used, with what is wrong and what to do."""


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
    """

    name: str
    num_rows: int
    num_columns: int
    dtype: np.dtype
    read: Callable[[int, int, int], Iterator[np.ndarray]]
    cuts: tuple[int, ...] | None = None
    columns: tuple[str, ...] | None = None


class SomeRows(NamedTuple):
    """Tables without some of their rows, which are kept aside for other uses: data for `fit`."""

    tables: list[Table]
    left_out: np.ndarray  # numbers of those rows, counted over all tables, ascending


def open_tables(path) -> list[Table]:
    """Open a data file, or all `.npy`, `.npz`, `.csv` and `.parquet` files of a folder in the order of their names.

    Raises:
        DataFileError: Naming the file, what is wrong with it and what to do.
    """
    path = Path(path)
    if not path.exists():
        raise DataFileError(f"{path} does not exist (looked from {Path.cwd()}). Check the name.")
    formats = ", ".join(FORMATS)
    if not path.is_dir():
        if path.suffix not in FORMATS:
            raise DataFileError(f"{path}: files ending in {path.suffix or 'nothing'!r} are not read. Give {formats}.")
        return [FORMATS[path.suffix](path)]
    files = sorted(file for file in path.iterdir() if file.suffix in FORMATS)
    if not files:
        others = len(list(path.iterdir()))
        raise DataFileError(f"{path} has no data files ({others} others). Give a folder with files {formats}.")
    tables = [FORMATS[file.suffix](file) for file in files]
    for table in tables[1:]:
        _check_alike(tables[0], table)
    return tables


def memmap_table(X: np.memmap, name: str) -> Table:
    """Return a memory-mapped array as a table. Pages that were read are given back: they would count as memory."""
    if X.ndim != 2 or 0 in X.shape:
        raise DataFileError(
            f"{name} has shape {X.shape}; data are rows and columns, (N, D), at least one of each. For images: "
            "X.reshape(len(X), -1)."
        )
    dtype = _number_type(X.dtype, name)
    is_private = X.mode == "c"  # changes live in these pages only

    def read(start, stop, size):
        for first in range(start, stop, size):
            yield np.asarray(X[first : min(first + size, stop)]).astype(dtype, copy=False)
        if not is_private and hasattr(mmap, "MADV_DONTNEED"):
            X._mmap.madvise(mmap.MADV_DONTNEED)  # pyright: ignore[reportAttributeAccessIssue]

    num_rows, num_columns = X.shape
    return Table(name, num_rows, num_columns, dtype, read)


def _open_npy(path: Path) -> Table:
    with reading(path, "np.save(path, X)"):
        X: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    return memmap_table(X, str(path))


def _open_npz(path: Path) -> Table:
    """Return the only matrix in the file; it is compressed as a whole, and so it is read as a whole."""
    with reading(path, "np.savez(path, X=X)"), zipfile.ZipFile(path) as archive:
        headers = {name: _npy_header(archive, name) for name in archive.namelist() if name.endswith(".npy")}
        _check_sizes(archive, headers)
    matrices = [name for name, (shape, _) in headers.items() if len(shape) == 2 and 0 not in shape]
    if len(matrices) != 1:
        found = ", ".join(f"{name.removesuffix('.npy')} {shape}" for name, (shape, _) in headers.items()) or "nothing"
        raise DataFileError(f"{path} holds {found}; it needs exactly one matrix (N, D). Save that alone.")
    ((num_rows, num_columns), dtype), member = headers[matrices[0]], matrices[0].removesuffix(".npy")
    dtype = _number_type(dtype, str(path))

    def read(start, stop, size):
        with reading(path, "np.savez(path, X=X)"), np.load(path, allow_pickle=False) as file:
            X = file[member].astype(dtype, copy=False)
        yield from (X[first : min(first + size, stop)] for first in range(start, stop, size))

    return Table(str(path), num_rows, num_columns, dtype, read, cuts=(0, num_rows))


def _open_csv(path: Path) -> Table:
    """Return a file of numbers as text, which is read as a whole."""
    with reading(path, "pandas.DataFrame.to_csv(path, index=False)"):
        X, names, _ = read_csv(path)

    def read(start, stop, size):
        yield from (X[first : min(first + size, stop)] for first in range(start, stop, size))

    num_rows, num_columns = X.shape
    return Table(str(path), num_rows, num_columns, X.dtype, read, cuts=(0, num_rows), columns=names)


def _open_parquet(path: Path) -> Table:
    return parquet_table(path)


def parquet_table(path: Path, label_column: str | None = None) -> Table:
    """Return a Parquet file as a table, without its column of labels if it has one."""
    file = _parquet_file(path)
    schema = file.schema_arrow
    if label_column is not None and label_column not in schema.names:
        raise DataFileError(f"{path}: {no_column(label_column, schema.names)}")
    names = tuple(name for name in schema.names if name != label_column)
    types = [_arrow_number_type(schema.field(name).type) for name in names]
    words = [name for name, type_ in zip(names, types, strict=True) if type_ is None]
    if words or not names:
        which = "no numeric columns" if len(words) == len(names) else f"columns that are no numbers: {words[:5]}"
        advice = "Encode categories, leave out what is no number, or name the column of labels (--label-column)."
        raise DataFileError(f"{path} has {which}. {advice}")
    if not file.metadata.num_rows:
        raise DataFileError(f"{path} has no rows. Leave it out.")
    dtype = _number_type(np.result_type(*types), str(path))
    ends = np.cumsum([file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)])
    cuts = tuple(map(int, dict.fromkeys([0, *ends])))

    def read(start, stop, size):
        groups = [g for g, end in enumerate(ends) if start < end <= stop]
        with reading(path, "DataFrame.to_parquet(path)"):
            # A file of its own for each reader: they take turns. Without buffers, a large row group is not held whole.
            reader = _parquet_file(path, pre_buffer=False, buffer_size=2**16)
            for batch in reader.iter_batches(size, row_groups=groups, columns=list(names), use_threads=False):
                yield _matrix(batch, dtype, f"{path}, rows {start} to {stop}")

    return Table(str(path), file.metadata.num_rows, len(names), dtype, read, cuts, names)


def parquet_columns(path: Path) -> tuple[str, ...]:
    """Return the names of all columns of a Parquet file."""
    return tuple(_parquet_file(path).schema_arrow.names)


def parquet_labels(path: Path, label_column: str) -> np.ndarray:
    """Return one column of a Parquet file, which may hold words."""
    file = _parquet_file(path)
    with reading(path, "DataFrame.to_parquet(path)"):
        labels = np.asarray(file.read(columns=[label_column]).column(0).to_pylist())
    return labels if labels.dtype.kind in "iufb" else labels.astype(str)


def _parquet_file(path, **options):
    try:
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{path}: reading Parquet needs pyarrow: pip install 'aevb[parquet]'") from error
    with reading(path, "DataFrame.to_parquet(path)"):
        return pyarrow.parquet.ParquetFile(path, **options)


def _matrix(batch, dtype, name) -> np.ndarray:
    rows = np.empty((batch.num_rows, batch.num_columns), dtype)
    for place, column in enumerate(batch.columns):
        if column.null_count and dtype.kind != "f":  # of numbers they become NaN, which is refused with its place
            raise DataFileError(f"{name}: column {batch.schema.names[place]!r} has missing values. Drop or fill them.")
        rows[:, place] = column.to_numpy(zero_copy_only=False)
    return rows


def _arrow_number_type(type_):
    from pyarrow import types

    is_number = types.is_boolean(type_) or types.is_integer(type_) or types.is_floating(type_)
    return np.dtype(type_.to_pandas_dtype()) if is_number else None


def _npy_header(archive, name):
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    return shape, dtype


def _check_sizes(archive, headers):
    """Refuse a header that promises more than the archive holds, before memory is taken for it."""
    for name, (shape, dtype) in headers.items():
        promised, held = math.prod(shape) * dtype.itemsize, archive.getinfo(name).file_size
        if promised > held and not dtype.hasobject:
            raise ValueError(f"{name} promises {promised:,} bytes and has {held:,}")


def _number_type(dtype, name) -> np.dtype:
    number = number_type(dtype)
    if number is None:
        raise DataFileError(f"{name} holds {dtype}, which are no numbers. Save X.astype('float32') or bytes instead.")
    return number


def _check_alike(one: Table, other: Table):
    facts = {
        "number of columns": (one.num_columns, other.num_columns),
        "type of numbers": (one.dtype, other.dtype),
        "columns' names": (one.columns, other.columns),
    }
    for what, (first, second) in facts.items():
        if first != second:
            raise DataFileError(f"{other.name}: the {what} is {second}, in {one.name} it is {first}. Save them alike.")


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

# How a file is opened, by how its name ends.
FORMATS: dict[str, Callable[[Path], Table]] = {
    ".npy": _open_npy,
    ".npz": _open_npz,
    ".csv": _open_csv,
    ".parquet": _open_parquet,
}
