"""The entries of one column, in the same form whatever data frame they come from."""

import datetime
import decimal
import numbers
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from aevb.errors import shown

NUMBER, BOOLEAN, TEXT, DATE, DURATION, EMPTY, OTHER = "number", "boolean", "text", "date", "duration", "empty", "other"
WORDS = {
    NUMBER: "numbers",
    BOOLEAN: "true and false",
    TEXT: "text",
    DATE: "dates",
    DURATION: "durations",
    EMPTY: "no entries",
    OTHER: "another type",
}
LARGEST_WHOLE = 2**53  # the whole numbers up to this one are exact in float64
_LARGEST = float(np.finfo(np.float32).max)
_ZONED = re.compile(r"datetime64\[(?P<unit>\w+), (?P<zone>.+)\]")  # of pandas
_NESTED = list | tuple | dict | set | np.ndarray


@dataclass(frozen=True)
class Storage:
    """How a frame stores a column: what is needed to make it again.

    Args:
        group: What the entries are: "number", "boolean", "text", "date", "duration", "empty" or "other".
        type: The name of narwhals' data type, such as "Int16".
        native: The data type as the frame's own library writes it, such as "int16[pyarrow]".
        unit: Of dates and durations: "D", "s", "ms", "us" or "ns".
        zone: Time zone of dates.
        categories: All categories that the data type declares, in order.
        is_ordered: Whether their order has a meaning.
    """

    group: str
    type: str
    native: str
    unit: str = ""
    zone: str | None = None
    categories: tuple[Any, ...] = ()
    is_ordered: bool = False

    @property
    def is_integer(self) -> bool:
        """Whether the data type holds whole numbers only."""
        return self.type.startswith(("Int", "UInt"))


class Cells(NamedTuple):
    """Entries (n,) of a column.

    Args:
        name: The column's name.
        values: float64 for numbers and booleans, NaN where missing; int64 for dates and durations, in units since
            1970; objects for text, for categories, and for whole numbers that float64 cannot hold.
        missing: (n,), which entries are missing.
        storage: How the frame stores them.
    """

    name: str
    values: np.ndarray
    missing: np.ndarray
    storage: Storage

    @property
    def group(self) -> str:
        """What the entries are."""
        return self.storage.group

    @property
    def observed(self) -> np.ndarray:
        """The entries that are not missing."""
        return self.values[~self.missing]


def read_cells(series: Any, name: str) -> Cells:
    """Return the entries of a narwhals series, or of a column of a matrix.

    Raises:
        ValueError: Entries are complex, infinite, of mixed types or in several time zones; the message names them.

    Example:
        >>> import polars as pl
        >>> read_cells(nw.from_native(pl.Series([3, None]), series_only=True), "age").values
        array([ 3., nan])
    """
    if not isinstance(series, nw.Series):  # the column of a matrix
        return series.read(name)
    dtype, native = series.dtype, _native_type(series)
    missing = series.is_null().to_numpy().astype(bool)
    kind = type(dtype).__name__
    if native.startswith("complex"):
        raise ValueError(f"{_at(name)} holds complex numbers. Give two columns: its real and its imaginary part.")
    if missing.all():
        return _empty(name, missing, Storage(EMPTY, kind, native))
    if dtype == nw.Boolean or dtype.is_numeric() or native.startswith("float"):  # older narwhals have no float16
        return _number_cells(series, name, missing, Storage(BOOLEAN if dtype == nw.Boolean else NUMBER, kind, native))
    if zoned := _ZONED.fullmatch(native):  # also zones that some versions of narwhals do not know
        naive = series.to_native().dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        return _time_cells(naive, name, missing, Storage(DATE, "Datetime", native, zoned["unit"], zoned["zone"]))
    if isinstance(dtype, nw.Datetime | nw.Duration | nw.Date):
        unit, zone = getattr(dtype, "time_unit", "D"), getattr(dtype, "time_zone", None)
        group = DURATION if isinstance(dtype, nw.Duration) else DATE
        return _time_cells(series.to_numpy(), name, missing, Storage(group, kind, native, unit, zone))
    if isinstance(dtype, nw.Categorical | nw.Enum):
        categories, is_ordered = _categories(series)
        storage = Storage(TEXT, kind, native, categories=categories, is_ordered=is_ordered)
        return object_cells(series.to_numpy(), name, missing, storage)
    if isinstance(dtype, nw.String | nw.Object):
        return object_cells(series.to_numpy(), name, missing, Storage(TEXT, kind, native))
    return Cells(name, np.empty(len(missing), object), missing, Storage(OTHER, kind, native))


def _native_type(series):
    native = series.to_native()
    return str(getattr(native, "type", None) or native.dtype)


def _categories(series) -> tuple[tuple, bool]:
    """Return the declared categories in their order, and whether the order has a meaning."""
    native = series.to_native()
    if hasattr(native, "cat") and hasattr(native.cat, "categories"):  # pandas
        return tuple(native.cat.categories.tolist()), bool(native.cat.ordered)
    if hasattr(native, "unify_dictionaries"):  # Arrow
        labels = native.unify_dictionaries().chunk(0).dictionary.to_pylist()
        return tuple(labels), bool(native.type.ordered)
    if isinstance(series.dtype, nw.Enum):
        return tuple(series.dtype.categories), True
    return tuple(sorted(series.drop_nulls().unique().to_list())), False  # the others are shared by all of polars


def _at(name):
    return f"X: column {name!r}"


def _empty(name, missing, storage):
    return Cells(name, np.full(len(missing), np.nan), missing, storage)


def _number_cells(series, name, missing, storage):
    if storage.is_integer and max(abs(series.min()), abs(series.max())) > LARGEST_WHOLE:
        return Cells(name, np.array(series.to_list(), object), missing, storage)
    # Booleans with missing entries arrive as objects.
    values = series.to_numpy() if storage.group == NUMBER else np.where(missing, np.nan, series.to_numpy())
    values = np.where(missing, np.nan, values.astype(np.float64))
    check_finite(values, name)
    return Cells(name, values, np.isnan(values), storage)


def check_finite(values: np.ndarray, name: str) -> None:
    """Refuse infinite numbers and those beyond the range of float32; the message names the first."""
    bad = np.abs(values) > _LARGEST
    if bad.any():
        first = int(np.argmax(bad))
        what = "infinity is not allowed" if np.isinf(values[first]) else "it exceeds the range of float32"
        raise ValueError(
            f"{_at(name)} holds {values[first]} in row {first} ({bad.sum():,} such, rows counted from 0): {what}. "
            "Correct those entries, or mark them as missing (NaN)."
        )


def _time_cells(values, name, missing, storage):
    if values.dtype == object:  # pandas has no dates of its own
        return _object_times(values, name, missing, storage)
    missing = missing | np.isnat(values)
    return Cells(name, np.where(missing, 0, values.astype(np.int64)), missing, storage)


def object_cells(values, name, missing, storage):
    """Return entries that may be any Python objects, after a look at their types."""
    found = {}  # a row for each group
    for type_, row in _first_rows(values, missing):
        found.setdefault(_group_of(type_, storage), row)
    if found.keys() == {NUMBER, BOOLEAN}:
        found = {NUMBER: found[NUMBER]}
    if len(found) > 1:
        (one, row), (other, second) = list(found.items())[:2]
        raise ValueError(
            f"{_at(name)} mixes {WORDS[one]} and {WORDS[other]}: {shown(values[row], 40)} in row {row}, "
            f"{shown(values[second], 40)} in row {second} (rows counted from 0). Give all its entries the same type."
        )
    group = next(iter(found), EMPTY)
    storage = Storage(**{**vars(storage), "group": group})
    if group == EMPTY:
        return _empty(name, missing, storage)
    if storage.categories and group in (NUMBER, BOOLEAN):
        return Cells(name, values.astype(object), missing, storage)
    if group in (NUMBER, BOOLEAN):
        return _object_numbers(values, name, missing, storage)
    if group in (DATE, DURATION):
        return _object_times(values, name, missing, storage)
    return Cells(name, values, missing, storage)


def _first_rows(values, missing):
    """Yield each type among the entries that are not missing, with its first row."""
    seen = {}
    for row, type_ in enumerate(map(type, values)):
        if type_ not in seen and not missing[row]:
            seen[type_] = row
    return seen.items()


def _group_of(type_, storage):
    if issubclass(type_, str):
        return TEXT
    if issubclass(type_, bool | np.bool_):
        return BOOLEAN
    if issubclass(type_, numbers.Real | decimal.Decimal):
        return NUMBER
    if storage.categories:
        return OTHER
    if issubclass(type_, datetime.date | np.datetime64):
        return DATE
    return DURATION if issubclass(type_, datetime.timedelta | np.timedelta64) else OTHER


def _object_numbers(values, name, missing, storage):
    is_whole = all(isinstance(value, numbers.Integral) for value in values[~missing])
    if is_whole and max(map(abs, values[~missing])) > LARGEST_WHOLE:
        return Cells(name, values, missing, storage)
    values = np.where(missing, np.nan, values).astype(np.float64)
    check_finite(values, name)
    return Cells(name, values, missing, storage)


def _object_times(values, name, missing, storage):
    """Return Python's dates, in days, or its datetimes or timedeltas, in microseconds."""
    is_date = all(type(value) is datetime.date for value in values[~missing])
    if any(getattr(value, "tzinfo", None) for value in values[~missing]):
        raise ValueError(
            f"{_at(name)} holds dates in several time zones, or objects with a time zone. Give all of them the same "
            "one: pandas.to_datetime(column, utc=True)."
        )
    unit = "D" if is_date else "us"
    missing_time = np.timedelta64("NaT") if storage.group == DURATION else np.datetime64("NaT")
    times = np.array([missing_time if hole else value for value, hole in zip(values, missing, strict=True)])
    times = times.astype(f"{'m8' if storage.group == DURATION else 'M8'}[{unit}]")
    return _time_cells(times, name, missing, Storage(**{**vars(storage), "unit": unit}))
