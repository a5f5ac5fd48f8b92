"""Data files as tables: `.npy`, `.npz`, `.csv` and Parquet files, and folders of those or of pictures.

Nothing is unpickled: a file with Python objects is refused.
"""

import math
import mmap
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from aevb.data.csv_file import read_csv
from aevb.data.image_folder import DEEP, ENDINGS, deep_levels, image_files, read_images
from aevb.data.parquet_file import parquet_table
from aevb.data.picture_table import picture_table
from aevb.data.table import SomeRows, Table, array_table, reading, stored_type
from aevb.errors import DataFileError

__all__ = [
    "FORMATS",
    "DataFileError",
    "SomeRows",
    "Table",
    "ending_of",
    "is_image_folder",
    "memmap_table",
    "open_tables",
]

_TO_CSV = "pandas.DataFrame.to_csv(path, index=False)"
LABEL_NAMES = ("y", "label", "labels", "target")  # names of an array of labels next to the rows in a `.npz` file


def open_tables(path) -> list[Table]:
    """Open a data file, all data files of a folder in the order of their names, or a folder of pictures.

    Raises:
        DataFileError: The message names the file, what is wrong with it and what to do.
    """
    from aevb.data.training_data import is_large

    path = Path(path)
    if not path.exists():
        raise DataFileError(f"{path} does not exist (looked from {Path.cwd()}). Check the name.")
    if not path.is_dir():
        ending = ending_of(path)
        if ending not in FORMATS:
            advice = _ADVICE.get(ending, f"Give {', '.join(FORMATS)}, or a folder of pictures.")
            raise DataFileError(f"{path}: files ending in {ending or 'nothing'!r} are not supported. {advice}")
        return [FORMATS[ending](path)]
    if is_image_folder(path):
        if is_large(tables := [picture_table(path)]):
            return tables
        rows, shape, _ = read_images(path)
        return [array_table(str(path), rows, image_shape=shape)]
    files = data_files(path)
    if not files:
        raise DataFileError(_nothing_in(path))
    tables = [FORMATS[ending_of(file)](file) for file in files]
    for table in tables[1:]:
        check_alike(tables[0], table)
    return tables


def ending_of(path: Path) -> str:
    """Return the ending of a file's name in lower case; `.csv.gz` is one ending.

    Example:
        >>> ending_of(Path("Data.v2.CSV.gz"))
        '.csv.gz'
    """
    return "".join(path.suffixes[-2 if path.suffix.lower() == ".gz" else -1 :]).lower()


def data_files(folder: Path) -> list[Path]:
    """Return the data files in a folder, in the order of their names."""
    return sorted(file for file in folder.iterdir() if ending_of(file) in FORMATS)


def is_image_folder(path: Path) -> bool:
    """Whether a path is a folder of pictures rather than tables."""
    return path.is_dir() and not data_files(path) and bool(image_files(path))


def _nothing_in(folder):
    names = sorted(path.name for path in folder.iterdir())
    held = f"contains neither data files nor pictures, but {', '.join(names[:5])}" + ", ..." * (len(names) > 5)
    below = next((file for file in sorted(folder.rglob("*")) if ending_of(file) in FORMATS), None)
    hint = f" Data files in its subfolders are not read: give {below.parent}." if below else ""
    return (
        f"{folder} {held if names else 'is empty'}.{hint} Give a folder with files {', '.join(FORMATS)}, or one with "
        f"pictures ({', '.join(sorted(ENDINGS))}), whose subfolders are read too."
    )


def memmap_table(X: np.ndarray, name: str) -> Table:
    """Return a memory-mapped array as a table. Pages are released after reading, so that they use no memory.

    16-bit images (N, height, width) are read as grey levels k/65535, like picture files; 16-bit rows (N, D) may be
    counts or measurements and are read unchanged.
    """
    shape, X = _image_shape(X.shape), _flat(X)
    if X.ndim != 2 or 0 in X.shape:
        raise DataFileError(
            f"{name} has shape {X.shape}; expected rows (N, D) or images (N, height, width), at least one. For other "
            "shapes: X.reshape(len(X), -1)."
        )
    dtype, convert = _stored(X.dtype, shape, name)
    is_private = getattr(X, "mode", "c") == "c"  # changes exist only in these pages

    def read(start, stop, size):
        try:
            for first in range(start, stop, size):
                yield convert(np.asarray(X[first : min(first + size, stop)]))
        finally:  # also if it is not read to the end
            if not is_private and hasattr(mmap, "MADV_DONTNEED"):
                X._mmap.madvise(mmap.MADV_DONTNEED)  # pyright: ignore[reportAttributeAccessIssue]

    num_rows, num_columns = X.shape
    return Table(name, num_rows, num_columns, dtype, read, image_shape=shape)


def _open_npy(path: Path) -> Table:
    with reading(path, "np.save(path, X)"):
        X: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    return memmap_table(X, str(path))


def _open_npz(path: Path) -> Table:
    """Return the only rows or images in the file. It may be compressed, so it is read as a whole."""
    with reading(path, "np.savez(path, X=X)"), zipfile.ZipFile(path) as archive:
        headers = {name: _npy_header(archive, name) for name in archive.namelist() if name.endswith(".npy")}
        _check_sizes(archive, headers)
    shapes = {name.removesuffix(".npy"): shape for name, (shape, _) in headers.items()}
    rows = [
        name for name, shape in shapes.items() if len(shape) in (2, 3, 4) and 0 not in shape and name not in LABEL_NAMES
    ]
    if len(rows) != 1:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items()) or "nothing"
        raise DataFileError(
            f"{path} contains {found}; expected exactly one array of rows (N, D) or images (N, height, width). Save "
            "only that one: np.savez(path, X=X)."
        )
    (member,) = rows
    (num_rows, *sizes), dtype = headers[f"{member}.npy"]
    shape = _image_shape(shapes[member])
    dtype, convert = _stored(dtype, shape, str(path))

    def read(start, stop, size):
        with reading(path, "np.savez(path, X=X)"), np.load(path, allow_pickle=False) as file:
            X = _flat(file[member])
        yield from (convert(X[first : min(first + size, stop)]) for first in range(start, stop, size))

    return Table(str(path), num_rows, math.prod(sizes), dtype, read, cuts=(0, num_rows), image_shape=shape)


def _stored(dtype, image_shape, name) -> tuple[np.dtype, Callable[[np.ndarray], np.ndarray]]:
    """Return the type in which the numbers of an array are stored, and their conversion to it."""
    stored = stored_type(dtype, name)
    if image_shape is None or (dtype.kind, dtype.itemsize) != ("u", 2):
        return stored, lambda rows: rows.astype(stored, copy=False)
    warnings.warn(f"{name}: its images are {DEEP}.", stacklevel=2)
    return stored, deep_levels


def _image_shape(shape) -> tuple[int, ...] | None:
    return tuple(shape[1:]) if len(shape) in (3, 4) else None


def _flat(X):
    """Return images (N, height, width) or (N, height, width, channels) as rows, anything else unchanged."""
    return X.reshape(len(X), -1) if X.ndim in (3, 4) and X.size else X


def _open_csv(path: Path) -> Table:
    """Return a text file of numbers, read as a whole."""
    with reading(path, _TO_CSV):
        X, names, _ = read_csv(path)
    return array_table(str(path), X, columns=names)


def _npy_header(archive, name):
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    return shape, dtype


def _check_sizes(archive, headers):
    """Refuse a header that claims more bytes than the archive contains, before allocating memory for it."""
    for name, (shape, dtype) in headers.items():
        claimed, held = math.prod(shape) * dtype.itemsize, archive.getinfo(name).file_size
        if claimed > held and not dtype.hasobject:
            raise ValueError(f"the header of {name} claims {claimed:,} bytes, but there are {held:,}")


def check_alike(one: Table, other: Table) -> None:
    """Refuse a table that differs from another one in its columns or their type."""
    facts = {
        "number of columns": (one.num_columns, other.num_columns),
        "data type": (one.dtype, other.dtype),
        "list of column names": (one.columns, other.columns),
    }
    for what, (first, second) in facts.items():
        if first != second:
            raise DataFileError(
                f"{other.name}: the {what} is {second}, but in {one.name} it is {first}. All files must agree."
            )


# How files are opened, by the ending of their names.
FORMATS: dict[str, Callable[[Path], Table]] = {
    ".npy": _open_npy,
    ".npz": _open_npz,
    ".csv": _open_csv,
    ".csv.gz": _open_csv,
    ".tsv": _open_csv,
    ".parquet": parquet_table,
}
_SHEET = "Save the sheet as .csv, or read it in Python: VAE().fit(pandas.read_excel(path))."
_LOAD = "Load it in Python and pass the array, VAE().fit(X), or save it with np.save('data.npy', X)."
_PICTURE = "Give the folder that contains the pictures."
_ADVICE = {  # for other common file types
    **dict.fromkeys((".xlsx", ".xls", ".ods"), _SHEET),
    **dict.fromkeys(
        (".feather", ".arrow"), "Write it as Parquet: pandas.read_feather(path).to_parquet('data.parquet')."
    ),
    **dict.fromkeys((".h5", ".hdf5", ".mat", ".json", ".jsonl", ".nc", ".pt", ".rds", ".sav", ".dta"), _LOAD),
    **dict.fromkeys((".pkl", ".pickle"), f"Python objects are never unpickled. {_LOAD}"),
    **dict.fromkeys((".zip", ".tar", ".tar.gz", ".7z"), "Unpack it first."),
    **dict.fromkeys((".txt", ".dat"), "If its cells are separated by commas, semicolons or tabs, rename it to .csv."),
    **dict.fromkeys(ENDINGS, _PICTURE),
}
