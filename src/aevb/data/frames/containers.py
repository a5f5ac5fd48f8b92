"""Data frames of pandas, polars and Arrow: taken apart by narwhals, and put together with their own data types."""

import importlib
import re
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from aevb.data.frames.cells import BOOLEAN, DATE, DURATION, NUMBER, Storage
from aevb.data.frames.matrix_frame import MatrixColumn, MatrixFrame
from aevb.data.frames.values_frame import ValuesFrame
from aevb.errors import WrongTypeError, shown

CONTAINERS = ("pandas", "polars", "pyarrow")
Values = tuple[np.ndarray, np.ndarray]  # entries (n,) as in Cells, and which are missing


def is_frame(X: Any) -> bool:
    """Whether this is a data frame of pandas or polars, or an Arrow table."""
    return nw.dependencies.is_into_dataframe(X) or nw.dependencies.is_polars_lazyframe(X)


def open_frame(X: Any) -> Any:
    """Return a data frame as one of narwhals, whose columns have different names.

    Raises:
        ValueError: It is not a data frame in memory, has no rows, or has two columns of one name.

    Example:
        >>> import polars as pl
        >>> open_frame(pl.DataFrame({"a": [1]})).columns
        ['a']
    """
    if isinstance(X, np.ndarray):
        return MatrixFrame(X)
    if isinstance(X, ValuesFrame):
        return X
    if nw.dependencies.is_polars_lazyframe(X):
        raise WrongTypeError("X is a lazy frame, whose rows are not computed yet. Give X.collect().")
    if not nw.dependencies.is_into_dataframe(X):
        raise WrongTypeError(_no_frame(X))
    names = [str(name) for name in getattr(X, "column_names", None) or X.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"X has more than one column of the name {', '.join(map(repr, twice))}. Rename them.")
    frame: Any = nw.from_native(X, eager_only=True)
    if container_of(frame) not in CONTAINERS:
        raise WrongTypeError(_no_frame(X))
    if not names:
        raise ValueError("X has no columns. Give at least one.")
    return frame


def _no_frame(X):
    return (
        f"X={shown(X)} is not a data frame of pandas or polars, nor an Arrow table. Convert it, for instance with "
        "X.to_pandas() or X.to_arrow()."
    )


def container_of(frame: Any) -> str:
    """Return which library a narwhals frame belongs to."""
    return str(frame.implementation)


def series_of(frame: Any) -> dict[str, Any]:
    """Return the columns of a frame by their names as text."""
    if isinstance(frame, MatrixFrame | ValuesFrame):
        return frame.cells()
    return {str(name): frame[:, place] for place, name in enumerate(frame.columns)}


def native(column: Any) -> Any:
    """Return a column as its own library has it; the column of a matrix as entries that `build_frame` takes."""
    if isinstance(column, MatrixColumn):
        return None, (column.values, np.isnan(column.values))
    return column.to_native()


def build_frame(container: str, columns: Mapping[Any, tuple[Storage, Values] | Any], index: Any = None) -> Any:
    """Return a data frame.

    Args:
        container: "pandas", "polars" or "pyarrow"; "numpy" for a matrix.
        columns: By name: storage and entries, or a column of that library.
        index: The index of a pandas frame; None for 0, 1, ...
    """
    if container == MatrixFrame.implementation:
        return np.stack([np.asarray(entry[1][0], np.float64) for entry in columns.values()], axis=1)
    library = _library(container)
    make = {"pandas": _pandas_column, "polars": _polars_column, "pyarrow": _arrow_column}[container]
    made = {
        name: make(library, entry[0], *entry[1]) if isinstance(entry, tuple) else entry
        for name, entry in columns.items()
    }
    if container == "pandas":
        index = library.RangeIndex(len(next(iter(made.values())))) if index is None else index
        return library.DataFrame({name: column.set_axis(index) for name, column in made.items()})
    return library.table(made) if container == "pyarrow" else library.DataFrame(made)


def _library(container):
    try:
        return importlib.import_module(container)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"The model learned from a data frame of {container}, which is not installed: pip install {container}, or "
            "give a frame of another library as `like`."
        ) from error


def python_values(storage: Storage, values: np.ndarray, missing: np.ndarray) -> list:
    """Return entries as Python's own objects, None where they are missing."""
    if storage.group in (DATE, DURATION):
        return times(storage, values, missing).astype(object).tolist()
    if storage.is_integer or storage.group == BOOLEAN:
        convert = int if storage.is_integer else bool
        return [None if hole else convert(value) for value, hole in zip(values.tolist(), missing, strict=True)]
    return [None if hole else value for value, hole in zip(values.tolist(), missing, strict=True)]


def times(storage: Storage, ticks: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return dates or durations as NumPy's, NaT where they are missing."""
    kind = "m8" if storage.group == DURATION else "M8"
    return np.where(missing, np.iinfo(np.int64).min, ticks).astype(np.int64).astype(f"{kind}[{storage.unit}]")


def _pandas_column(pd, storage, values, missing):
    native = storage.native
    if storage.categories:
        categories = pd.CategoricalDtype(list(storage.categories), ordered=storage.is_ordered)
        return pd.Series(python_values(storage, values, missing), dtype=categories)
    if native == "object":
        return pd.Series(python_values(storage, values, missing), dtype=object)
    dtype = _pandas_type(pd, storage)
    if storage.group in (DATE, DURATION):
        series = _zoned_pandas(pd.Series(times(storage, values, missing)), storage)
        return series if dtype is None else series.astype(dtype)
    if dtype is None:
        return pd.Series(python_values(storage, values, missing))
    if missing.any() and isinstance(dtype, np.dtype) and dtype.kind in "iub":
        dtype = {"b": "boolean", "i": f"Int{8 * dtype.itemsize}", "u": f"UInt{8 * dtype.itemsize}"}[dtype.kind]
    if storage.group == NUMBER and values.dtype == np.float64 and not missing.any():
        return pd.Series(values).astype(dtype)
    return pd.Series(python_values(storage, values, missing), dtype=dtype)


def _pandas_type(pd, storage):
    """Return the data type that a name means to pandas; None if it is another library's name."""
    arrow = storage.native.removesuffix("[pyarrow]")
    if arrow != storage.native and storage.type == "String":  # pandas reads "string[pyarrow]" in another way
        return pd.ArrowDtype(_arrow_type(importlib.import_module("pyarrow"), arrow))
    try:
        return pd.api.types.pandas_dtype(storage.native)
    except TypeError:
        return {"Boolean": np.dtype(bool), "String": None}.get(storage.type)


def _zoned_pandas(series, storage):
    return series if storage.zone is None else series.dt.tz_localize("UTC").dt.tz_convert(storage.zone)


def _polars_column(pl, storage, values, missing):
    if storage.group in (DATE, DURATION):
        series = pl.Series(times(storage, values, missing))
        if storage.unit == "s":
            series = series.dt.cast_time_unit("ms")
        if storage.zone is not None:
            return series.dt.replace_time_zone("UTC").dt.convert_time_zone(storage.zone)
        return series
    dtype = getattr(pl, storage.type, None) if storage.type not in ("Object", "Decimal", "Unknown") else None
    if storage.is_ordered and all(isinstance(label, str) for label in storage.categories):
        dtype = pl.Enum(storage.categories)
    if storage.categories and not isinstance(storage.categories[0], str):
        dtype = None  # categories of polars are text
    return pl.Series(python_values(storage, values, missing), dtype=dtype, strict=False)


def _arrow_column(pa, storage, values, missing):
    if storage.group in (DATE, DURATION):
        made = pa.array(times(storage, values, missing))
        return made.cast(pa.timestamp(storage.unit, storage.zone)) if storage.zone is not None else made
    made = pa.array(python_values(storage, values, missing))
    dictionary = re.fullmatch(r"dictionary<values=(.+), indices=(.+), ordered=([01])>", storage.native)
    if dictionary:
        value, index, is_ordered = dictionary.groups()
        codes = {category: code for code, category in enumerate(storage.categories)}
        indices = pa.array([codes.get(label) for label in made.to_pylist()], _arrow_type(pa, index))
        labels = pa.array(storage.categories, _arrow_type(pa, value))
        return pa.DictionaryArray.from_arrays(indices, labels, ordered=is_ordered == "1")
    if storage.categories:
        return made.dictionary_encode()
    dtype = _arrow_type(pa, storage.native) or _arrow_type(pa, storage.type.lower())
    return made if dtype is None else made.cast(dtype)


def _arrow_type(pa, name):
    try:
        return pa.type_for_alias(name)
    except ValueError:
        return None
