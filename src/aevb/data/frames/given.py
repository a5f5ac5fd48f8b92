"""What is given of some columns, as candidates of stored numbers: `given={"sex": "F", "age": (30, 40)}`."""

import datetime
from collections.abc import Hashable, Mapping
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from aevb.data.frames.cells import DATE, Cells, Storage, check_finite
from aevb.data.frames.column_format import TIMES, ColumnFormat
from aevb.data.frames.format import TableFormat
from aevb.data.frames.stored import COUNTS, LABELS
from aevb.errors import no_column, shown
from aevb.fitted.tables import Evidence

NUM_CELLS = 64  # of a range of numbers
NEARLY_HALF = 0.499  # so that draws in float32 are rounded to a number of the range
ROUNDING = 1e-6
MAX_COUNTS = 256  # of a range of counts; wider ones are divided into cells


def read_given(table: TableFormat, given: Mapping[str, Any]) -> Evidence:
    """Return the candidates for each column.

    Args:
        table: The format of the table.
        given: By column: a value; a list or set of values; or a pair (low, high) of numbers or dates, of which one may
            be None or infinite.

    Raises:
        ValueError: A column or a value is not known, or a range is empty; the message says what is allowed.

    Example:
        >>> import polars as pl
        >>> table = TableFormat.learn(pl.DataFrame({"age": [31.5, 40.25, 54.75], "sex": ["F", "M", "F"]}))
        >>> read_given(table, {"sex": "M"}).values.tolist()
        [[0.0, 1.0]]
    """
    columns = {column.name: column for column in table.columns}
    candidates: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for name, value in given.items():
        if str(name) not in columns:
            _refuse(str(name), table)
        candidates[list(columns).index(str(name))] = _candidates(columns[str(name)], value)
        if str(name) in table.modeled:  # what is given is observed
            candidates[len(columns) + table.modeled.index(str(name))] = np.zeros(1), np.zeros(1)
    K, D = max((len(values) for values, _ in candidates.values()), default=1), table.matrix.num_columns
    values, widths, is_candidate = np.zeros((K, D)), np.zeros((K, D)), np.zeros((K, D), bool)
    for place, (found, width) in candidates.items():
        values[: len(found), place], widths[: len(found), place] = found, width
        is_candidate[: len(found), place] = True
    return Evidence(values, widths, is_candidate)


def _refuse(name, table):
    for column in table.left_out:
        if column.name == name:
            raise ValueError(f"given: the model did not learn column {name!r}, which is {column.reason}.")
    raise ValueError(f"given: {no_column(name, [column.name for column in table.columns])}")


def _candidates(column: ColumnFormat, value):
    """Return the stored numbers that a column may have, and the widths of their cells; 0 for single values."""
    if isinstance(value, list | set | frozenset | np.ndarray):
        found = np.unique([_stored(column, one) for one in value])
        if not found.size:
            raise ValueError(f"given: column {column.name!r} has no values. Give at least one.")
        return found, np.zeros(len(found))
    if not isinstance(value, tuple):
        return np.array([_stored(column, value)]), np.zeros(1)
    if column.column.family in LABELS:
        raise ValueError(
            f"given: column {column.name!r} has labels, and {shown(value)} is a range. Give a list of labels."
        )
    if len(value) != 2:
        raise ValueError(f"given: column {column.name!r}: {shown(value)} is not a pair (low, high).")
    low, high = (_stored(column, _end(column, end, place)) for place, end in enumerate(value))
    if low < high and column.is_whole and column.column.family not in COUNTS:
        low, high = _around(column, low, high)
    if not low < high:
        first, last = (_shown_end(column, place) for place in (0, 1))
        raise ValueError(
            f"given: column {column.name!r}: nothing lies in the range {shown(value)}. Give (low, high) with low < "
            f"high; in training it was from {first} to {last}, which None stands for."
        )
    if column.column.family in COUNTS and high - low < MAX_COUNTS:
        counts = np.arange(low, high + 1)
        return counts, np.zeros(len(counts))
    if column.column.family == "histogram":  # whose density is constant between whole positions
        edges = np.unique([low, *np.arange(np.ceil(low), np.floor(high) + 1), high])
    else:
        knots = [score for score in column.column.scores if low < score < high] if column.column.kind.has_cells else []
        edges = np.unique([*np.linspace(low, high, NUM_CELLS + 1), *knots])
    return (edges[1:] + edges[:-1]) / 2, np.diff(edges)


def _around(column, low, high):
    """Return the ends of a range of whole numbers, half a number further out: draws are rounded."""
    numbers = column.column.in_units(np.array([low, high]))
    inside = np.ceil(numbers[0] - ROUNDING), np.floor(numbers[1] + ROUNDING)
    return column.column.stored(np.array([inside[0] - NEARLY_HALF, inside[1] + NEARLY_HALF]))


def _end(column, end, place):
    """Return the end of a range; the smallest or largest value in training for None and infinity."""
    is_open = end is None or (isinstance(end, float) and np.isinf(end))
    return _observed_end(column, place) if is_open else end


def _observed_end(column, place):
    observed = column.high if place else column.low
    if column.storage.group not in TIMES:
        return observed
    kind = "M8" if column.storage.group == DATE else "m8"
    return np.int64(int(observed) * column.step + column.origin).astype(f"{kind}[{column.storage.unit}]")


def _shown_end(column, place):
    end = _observed_end(column, place)
    return str(end) if column.storage.group in TIMES else f"{end:g}"


def _stored(column: ColumnFormat, value) -> float:
    """Return the stored number of one value."""
    if column.column.family in LABELS:
        return _code(column, value)
    try:
        number = _ticks(column.storage, value) if column.storage.group in TIMES else float(value)
        dtype = np.int64 if column.storage.group in TIMES else np.float64
        cells = Cells(column.name, np.array([number], dtype), np.zeros(1, bool), column.storage)
        check_finite(cells.values, column.name)
        stored = float(column.encode(cells)[0])
    except (TypeError, ValueError, OverflowError):
        stored = np.nan
    if np.isnan(stored):
        first, last = (_shown_end(column, place) for place in (0, 1))
        raise ValueError(
            f"given: column {column.name!r} is {column.kind!r}, from {first} to {last} in training, and cannot be "
            f"{shown(value)}."
        )
    return stored


def _code(column, value):
    """Return the code of a label, which may also be given as text."""
    codes: dict[Any, int] = {str(level): code for code, level in enumerate(column.levels)}
    codes |= {level: code for code, level in enumerate(column.levels)}
    if not isinstance(value, Hashable) or value not in codes:
        known = ", ".join(shown(level, 40) for level in column.levels[:20]) + ", ..." * (len(column.levels) > 20)
        raise ValueError(f"given: column {column.name!r} has no value {shown(value)}; its values are {known}.")
    return float(codes[value])


def _ticks(storage: Storage, value) -> int:
    """Return a date or duration in the units of its column; a date without a time zone is in the column's own.

    Raises:
        ValueError: It is none, or it has a time zone and the column has not.
    """
    kind = "M8" if storage.group == DATE else "m8"
    zone = getattr(value, "tzinfo", None)
    if zone is not None and storage.zone is None:
        raise ValueError("the dates of this column have no time zone.")
    if kind == "M8" and storage.zone is not None and not isinstance(value, np.datetime64):
        moment = datetime.datetime.fromisoformat(str(value))
        moment = moment.replace(tzinfo=ZoneInfo(storage.zone)) if moment.tzinfo is None else moment
        value = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    time = np.array(value, f"{kind}[{storage.unit}]")
    if np.isnat(time):
        raise ValueError("it is missing.")
    return int(time.astype(np.int64))
