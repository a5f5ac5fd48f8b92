"""Load data by name or path into memory, with what is needed to draw them: for the commands."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from aevb.data.binarization import kind_of
from aevb.data.csv_file import read_csv, read_form
from aevb.data.datasets import DATASETS, Dataset, load_dataset
from aevb.data.image_folder import AS_THEY_ARE, PictureOptions, read_images
from aevb.data.parquet_file import parquet_columns, parquet_labels, parquet_table
from aevb.data.published import Report
from aevb.data.table import Table, blocks, reading
from aevb.data.tables import LABEL_NAMES, ending_of, is_image_folder, open_tables
from aevb.errors import DataFileError, did_you_mean

_TEXTS = (".csv", ".csv.gz", ".tsv")
WITH_LABEL_COLUMNS = (*_TEXTS, ".parquet")
_TO_CSV = "pandas.DataFrame.to_csv(path, index=False)"


def open_dataset(
    source: str,
    *,
    label_column: str | None = None,
    drop_columns: Sequence[str] = (),
    image_shape: tuple[int, ...] | None = None,
    pictures: PictureOptions = AS_THEY_ARE,
    report: Report = lambda *_: None,
) -> Dataset:
    """Load a data set by name, or a user's files.

    Args:
        source: A key of ``DATASETS``, or a path: a `.npy` file of rows (N, D) or images (N, height, width) or
            (N, height, width, channels; 16-bit ones are read as k/65535, from 0 to 1), a `.npz`
            file with one such array (and labels, if one of `y`, `label`, `labels`, `target` has N entries), a `.csv`,
            `.csv.gz`, `.tsv` or `.parquet` file, a folder of those, or a folder of pictures and of folders of pictures.
        label_column: Column of labels in a `.csv`, `.csv.gz`, `.tsv` or `.parquet` file; not used for training.
        drop_columns: Columns of such a file to leave out.
        image_shape: (height, width) or (height, width, channels) of rows that are images.
        pictures: How a folder of pictures is read.
        report: Called during a download, see :func:`load_dataset`.

    Raises:
        DataFileError: The message names the file, what is wrong and where.

    Example:
        >>> open_dataset("digits").title
        '1,797 digits of scikit-learn, 8 x 8 grey levels'
    """
    if source in DATASETS:
        return load_dataset(source, report)
    path = Path(source)
    if not path.exists():
        names = ", ".join(DATASETS)
        hint = did_you_mean(str(source), DATASETS)
        raise DataFileError(
            f"{source} is neither the name of a data set ({names}) nor a file (looked from {Path.cwd()}).{hint}"
        )
    if drop_columns and ending_of(path) not in WITH_LABEL_COLUMNS:
        raise DataFileError(
            f"{source}: columns can be left out (--drop-columns) only of {', '.join(WITH_LABEL_COLUMNS)} files."
        )
    if label_column is not None and ending_of(path) not in WITH_LABEL_COLUMNS:
        raise DataFileError(
            f"{source}: a label column (--label-column) is only for {', '.join(WITH_LABEL_COLUMNS)} files. In a .npz "
            "file, labels are an array y next to the rows; for pictures, they are the names of the subfolders."
        )
    return described(_read(path, label_column, drop_columns, pictures), source, image_shape)


def described(
    dataset: Dataset, source: str, image_shape: tuple[int, ...] | None, num_rows: int | None = None
) -> Dataset:
    """Return a data set with its name, image shape and title; its rows may be a subset of `num_rows` rows.

    Raises:
        DataFileError: The image shape does not match the rows.
    """
    rows = dataset.rows
    shape = image_shape or dataset.image_shape or _guessed_shape(rows)
    if shape is not None and math.prod(shape) != rows.shape[1]:
        raise DataFileError(f"{source}: its rows have {rows.shape[1]} columns, not {' x '.join(map(str, shape))}.")
    title = _title(Path(source), len(rows) if num_rows is None else num_rows, rows.shape[1], shape)
    return replace(dataset, name=source, image_shape=shape, title=title, binarization=kind_of(rows))


def columns_of(path: Path) -> tuple[str, ...]:
    """Return the columns of a `.csv` or `.parquet` file, by name or by index from 0; no columns for other data.

    A first column of a `.csv` file without a name is left out, see :func:`aevb.data.csv_file.read_csv`.
    """
    if not path.is_file() or ending_of(path) not in WITH_LABEL_COLUMNS:
        return ()
    if ending_of(path) == ".parquet":
        return parquet_columns(path)
    with reading(path, _TO_CSV):
        form = read_form(path)
    columns = form.columns or tuple(map(str, range(form.width)))
    return columns[1:] if columns[:1] == ("",) else columns


def own_tables(path: Path, label_column: str | None, drop_columns: Sequence[str] = ()) -> list[Table]:
    """Open the tables of a file or folder, without the label column and those to leave out."""
    return [parquet_table(path, label_column, drop_columns)] if ending_of(path) == ".parquet" else open_tables(path)


def own_labels(path: Path, label_column: str | None, num_rows: int) -> np.ndarray | None:
    """Return the labels in a Parquet file, or those next to the rows in a `.npz` file."""
    if ending_of(path) == ".parquet" and label_column is not None:
        return parquet_labels(path, label_column)
    return _npz_labels(path, num_rows) if ending_of(path) == ".npz" else None


def _read(path: Path, label_column, drop_columns, pictures) -> Dataset:
    name = str(path)
    if is_image_folder(path):
        rows, shape, labels = read_images(path, pictures)
        return Dataset(name, rows, labels, shape, "")
    if ending_of(path) in _TEXTS:
        with reading(path, _TO_CSV):
            rows, columns, labels = read_csv(path, label_column, drop_columns)
        return Dataset(name, rows, labels, None, "", columns=columns)
    tables = own_tables(path, label_column, drop_columns)
    rows = np.concatenate([block.copy() for _, _, block in blocks(tables)])
    labels = own_labels(path, label_column, len(rows))
    return Dataset(name, rows, labels, tables[0].image_shape, "", columns=tables[0].columns)


def _npz_labels(path, num_rows):
    with reading(path, "np.savez(path, X=X, y=y)"), np.load(path, allow_pickle=False) as archive:
        found = [archive[name] for name in LABEL_NAMES if name in archive.files]
    return next((labels for labels in found if labels.shape == (num_rows,)), None)


def _guessed_shape(rows):
    """Treat rows of bytes as square images if the number of columns is a square, 8 x 8 or more."""
    side = math.isqrt(rows.shape[1])
    return (side, side) if rows.dtype == np.uint8 and side >= 8 and side * side == rows.shape[1] else None


def _title(path, num_rows, num_columns, shape):
    what = f"images of {' x '.join(map(str, shape))}" if shape else f"rows of {num_columns} columns"
    return f"{path.name}, {num_rows:,} {what}"
