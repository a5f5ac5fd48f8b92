"""A user's file as a data frame, if its columns have words, dates or missing entries: for the commands."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from aevb.data.datasets import DATASETS, Dataset
from aevb.data.frames import as_table, read_frame
from aevb.data.frames.detection import MAX_FILE_BYTES
from aevb.data.frames.parts import complete_rows, labels_of, names_of, take_rows, without_columns
from aevb.data.own import WITH_LABEL_COLUMNS
from aevb.data.tables import ending_of
from aevb.errors import DataFileError, no_column


def open_own_frame(
    source: str,
    likelihood: Any = "auto",
    *,
    label_column: str | None = None,
    drop_columns: Sequence[str] = (),
    drop_missing: bool = False,
) -> Dataset | None:
    """Return a file as a data set whose rows are a data frame; None if it is a matrix of numbers, or other data.

    Args:
        source: Name of a data set, or a path.
        likelihood: Of the model: a name, or the kinds of columns.
        label_column: The column of labels, which the model does not see.
        drop_columns: Columns to leave out.
        drop_missing: Whether rows with missing entries are left out.

    Raises:
        DataFileError: There is no such column.
    """
    path = Path(source)
    if source in DATASETS or not path.is_file() or ending_of(path) not in WITH_LABEL_COLUMNS:
        return None
    if path.stat().st_size > MAX_FILE_BYTES:
        return None
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            frame = read_frame(path)
        except (DataFileError, ModuleNotFoundError, ValueError):
            return None  # reading it as a matrix says what is wrong
    known = names_of(frame)
    for name in filter(None, (label_column, *drop_columns)):
        if name not in known:
            if name.isdecimal():
                return None  # the number of a column of a file without a header
            raise DataFileError(f"{source}: {no_column(name, known)}")
    dataset = _dataset(source, frame, label_column, drop_columns)
    if drop_missing:
        dataset = _without_missing(dataset)
    if as_table(dataset.rows, likelihood) is None:
        return None
    for one in found:
        warnings.warn(str(one.message), one.category, stacklevel=2)
    return dataset


def _dataset(source, frame, label_column, drop_columns):
    labels = None if label_column is None else labels_of(frame, label_column)
    rows = without_columns(frame, (label_column, *drop_columns))
    columns = tuple(names_of(rows))
    title = f"{Path(source).name}, {len(rows):,} rows of {len(columns)} columns"
    return Dataset(source, rows, labels, None, title, binarization="none", columns=columns)


def _without_missing(dataset):
    complete = complete_rows(dataset.rows)
    if complete.all():
        return dataset
    rows, labels = take_rows(dataset.rows, complete.nonzero()[0]), dataset.labels
    title = f"{dataset.title}, of which {complete.sum():,} are complete"
    return replace(dataset, rows=rows, labels=None if labels is None else labels[complete], title=title)
