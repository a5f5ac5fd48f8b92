"""Rows of data for the model of a run: its columns, in its order, and the names of the rows."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aevb.cli.console import InputError, is_about_input
from aevb.cli.run_folder import Run
from aevb.cli.table_rows import read_table_rows


def read_rows(run: Run, data: str, *, is_raw: bool = False):
    """Return the rows of data for the model of a run: binarized like its training data, or as they are (`is_raw`).

    Those of a table are the numbers that the model stores.

    Raises:
        ValueError: The data cannot be used; the message says why.
    """
    if run.has_frames:
        known = read_table_rows(run, data).known
        with naming(data):
            return run.vae.model_.format.encode(known)
    return read_named_rows(run, data, is_raw=is_raw)[0]


def read_named_rows(run: Run, data: str, *, is_raw: bool = False, may_lack: bool = False):
    """Return rows as :func:`read_rows` does, and the names of pictures and the labels of rows, by column.

    With `may_lack`, columns that the file lacks are missing values.
    """
    import numpy as np

    from aevb.data import binarize, open_dataset

    label_column, drop_columns = _label_column(run, data), _drop_columns(run, data)
    left_out = (label_column, *drop_columns)
    added = _added(run, data, left_out) if may_lack else ()
    with naming(data):
        _check_columns(run, data, left_out, added)
    pictures = run.data.pictures._replace(skip_broken=False)  # each file has its row in the result
    dataset = open_dataset(data, label_column=label_column, drop_columns=drop_columns, pictures=pictures)
    how = "grey" if is_raw else run.data.binarization or "grey"
    rows, columns = dataset.rows, dataset.columns
    if added and columns:
        rows, columns = np.pad(rows, ((0, 0), (0, len(added))), constant_values=np.nan), (*columns, *added)
    with naming(data):
        rows = _in_order(rows, columns, run.columns)
        rows = binarize(rows, "static" if how == "dynamic" else how, run.data.seed)
    return rows, _row_names(run, data, dataset)


def _row_names(run, data, dataset):
    from aevb.data.image_folder import image_files
    from aevb.data.own import is_image_folder

    names = {}
    if is_image_folder(Path(data)):
        names["file"] = [str(file.relative_to(data)) for file in image_files(Path(data))]
    if dataset.labels is not None:
        names[run.data.label_column or "label"] = dataset.labels
    return names


def _drop_columns(run, data):
    """Return those columns of the data that the run leaves out."""
    from aevb.data.own import columns_of

    columns = columns_of(Path(data)) if run.data.drop_columns else ()
    return tuple(name for name in run.data.drop_columns if name in columns and name not in run.columns)


def _added(run, data, left_out):
    """Return the columns of the model that a file lacks, with a warning, if the file has any of the others."""
    from aevb.data.own import columns_of

    columns = [column for column in columns_of(Path(data)) if column not in left_out]
    added = tuple(column for column in run.columns if column not in columns)
    if not columns or len(added) == len(run.columns):
        return ()
    if added:
        names = ", ".join(map(repr, added))
        warnings.warn(f"{data} lacks {names}: filled in as missing values in all rows.", stacklevel=3)
    return added


def _check_columns(run, data, left_out, added):
    """Compare the column names before reading the file: an error about text in an extra column would mislead."""
    from aevb.data.own import columns_of
    from aevb.data.reading import places_of

    columns = [column for column in columns_of(Path(data)) if column not in left_out]
    if run.columns and columns and columns != [str(number) for number in range(len(columns))]:
        places_of(run.columns, [*columns, *added], "the file")


def _in_order(rows, columns, known):
    """Return rows with their columns in the order of the training data."""
    from aevb.data.reading import places_of

    return rows if not (columns and known) else rows[:, places_of(known, columns, "the file")]


@contextmanager
def naming(data: str) -> Iterator[None]:
    """Name the data in error messages about their contents."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"{data}: {error}") if is_about_input(error) else error from None


def _label_column(run, data):
    """Return the run's label column if these data have it too."""
    from aevb.data.own import columns_of

    columns, label = columns_of(Path(data)), run.data.label_column
    has_names = run.columns and label not in run.columns and not label.isdecimal() if label else False
    is_there = label in columns and (has_names or len(columns) > run.vae.n_features_in_)
    return label if is_there else None
