"""Parquet files as tables: columns of numbers, and optionally a label column."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aevb.data.table import Table, reading, stored_type
from aevb.errors import DataFileError, no_column


def parquet_table(
    path: Path | str, label_column: str | None = None, drop_columns: Sequence[str] = (), file: Any = None
) -> Table:
    """Return a Parquet file as a table, without its label column and the columns to leave out.

    Args:
        path: The file.
        label_column: Name of the label column.
        drop_columns: Names of the columns to leave out.
        file: Where its description is read, if not in the file at this path.
    """
    file = _parquet_file(path, file)
    schema = file.schema_arrow
    left_out = [*([] if label_column is None else [label_column]), *drop_columns]
    for name in left_out:
        if name not in schema.names:
            raise DataFileError(f"{path}: {no_column(name, schema.names)}")
    names = tuple(name for name in _columns(schema) if name not in left_out)
    types = [_arrow_number_type(schema.field(name).type) for name in names]
    words = [name for name, type_ in zip(names, types, strict=True) if type_ is None]
    if words or not names:
        which = "no numeric columns" if len(words) == len(names) else f"columns that are not numeric: {words}"
        advice = (
            "Encode categories as numbers, convert dates to days since the first, leave columns out "
            f"(--drop-columns {','.join(words)}), or name one as the label column (--label-column)."
        )
        raise DataFileError(f"{path} has {which}. {advice}")
    if not file.metadata.num_rows:
        raise DataFileError(f"{path} has no rows. Leave it out.")
    dtype = stored_type(np.result_type(*types), str(path))
    ends = np.cumsum([file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)])
    cuts = tuple(map(int, dict.fromkeys([0, *ends])))

    def read(start, stop, size):
        groups = [g for g, end in enumerate(ends) if start < end <= stop]
        with reading(path, "DataFrame.to_parquet(path)"):
            # One file per reader, because readers take turns. Without buffers, a large row group is read in parts.
            reader = _parquet_file(path, pre_buffer=False, buffer_size=2**16)
            for batch in reader.iter_batches(size, row_groups=groups, columns=list(names), use_threads=False):
                yield _matrix(batch, dtype, f"{path}, rows {start} to {stop}")

    return Table(str(path), file.metadata.num_rows, len(names), dtype, read, cuts, names)


def parquet_columns(path: Path) -> tuple[str, ...]:
    """Return the names of the columns of a Parquet file, without the index that pandas wrote."""
    return _columns(_parquet_file(path).schema_arrow)


def _columns(schema) -> tuple[str, ...]:
    """Return the column names, without the index columns that pandas lists in the metadata."""
    about = (schema.metadata or {}).get(b"pandas")
    index = json.loads(about).get("index_columns", []) if about else []
    return tuple(name for name in schema.names if name not in index)


def parquet_labels(path: Path, label_column: str) -> np.ndarray:
    """Return one column of a Parquet file, which may contain words."""
    file = _parquet_file(path)
    with reading(path, "DataFrame.to_parquet(path)"):
        labels = np.asarray(file.read(columns=[label_column]).column(0).to_pylist())
    return labels if labels.dtype.kind in "iufb" else labels.astype(str)


def _parquet_file(path, file=None, **options):
    try:
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{path}: reading Parquet needs pyarrow: pip install 'aevb[parquet]'") from error
    with reading(path, "DataFrame.to_parquet(path)"):
        return pyarrow.parquet.ParquetFile(path if file is None else file, **options)


def _matrix(batch, dtype, name) -> np.ndarray:
    rows = np.empty((batch.num_rows, batch.num_columns), dtype)
    for place, column in enumerate(batch.columns):
        if (
            column.null_count and dtype.kind != "f"
        ):  # in float columns they become NaN, which is refused with its position
            raise DataFileError(f"{name}: column {batch.schema.names[place]!r} has missing values. Drop or fill them.")
        rows[:, place] = column.to_numpy(zero_copy_only=False)
    return rows


def _arrow_number_type(type_):
    from pyarrow import types

    is_number = types.is_boolean(type_) or types.is_integer(type_) or types.is_floating(type_)
    return np.dtype(type_.to_pandas_dtype()) if is_number else None
