"""CSV and Parquet files with words, dates and missing entries, as data frames.

A CSV file is read with Python's own reader and the rules of :mod:`aevb.data.csv_file` about separators, decimal commas,
encodings and headers. The frame is of the first library that is installed of pandas, polars and pyarrow.

A cell is missing if it is empty, ``NA``, ``N/A``, ``NaN`` or ``null``, in upper or lower case. ``?`` is missing if the
other cells are numbers, dates or truth values, or if each of them has a letter or a digit, so that ``?`` is the odd one
out.
"""

import datetime
import importlib.util
import re
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from aevb.data.csv_file import CsvForm, lines_of, ragged_line, read_form
from aevb.data.frames.cells import BOOLEAN, DATE, NUMBER, TEXT, Storage
from aevb.data.frames.containers import CONTAINERS, build_frame
from aevb.data.table import reading
from aevb.errors import DataFileError

_MISSING = {"", "na", "n/a", "nan", "null"}
_WHOLE = re.compile(r"[+-]?(0|[1-9]\d*)")
_LEADING_ZERO = re.compile(r"[+-]?0\d+")  # postal codes and the like, which are no numbers
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?")
_TRUTH = {"true": True, "false": False}


def read_frame(path, text: Collection[str] = ()) -> Any:
    """Return a CSV or Parquet file as a data frame of the first library that is installed: pandas, polars or pyarrow.

    Args:
        path: The file.
        text: Columns of a CSV file that are text, also if all their cells look like numbers or dates.

    Raises:
        DataFileError: The file cannot be read; the message names it, what is wrong and what to do.
        ModuleNotFoundError: None of these libraries is installed.
    """
    path = Path(path)
    container = _installed(path)
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path, container)
    with reading(path, "pandas.DataFrame.to_csv(path, index=False)"):
        columns = _read_columns(path)
    return build_frame(
        container, {name: _typed(cells, comma, name in text) for name, (cells, comma) in columns.items()}
    )


def _installed(path):
    for container in CONTAINERS:
        if importlib.util.find_spec(container) is not None:
            return container
    raise ModuleNotFoundError(
        f"{path}: a table with words or dates needs pandas, polars or pyarrow: pip install pandas. A CSV file "
        "of numbers alone needs none of them."
    )


def _read_parquet(path, container):
    with reading(path, "DataFrame.to_parquet(path)"):
        if container == "polars":
            return _polars_parquet(importlib.import_module("polars"), path)
        if importlib.util.find_spec("pyarrow") is None:
            raise ModuleNotFoundError(f"{path}: reading Parquet needs pyarrow: pip install 'aevb[parquet]'")
        table = importlib.import_module("pyarrow.parquet").read_table(path)
        return table.to_pandas() if container == "pandas" else table


def _polars_parquet(pl, path):
    try:
        return pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:  # which is no ValueError
        raise ValueError(str(error)) from error


def _read_columns(path) -> dict[str, tuple[list[str], bool]]:
    """Return the cells of each column as text, and whether commas in numbers are decimal commas."""
    form = read_form(path)
    form = _with_header(path, form)
    rows = []
    for line, cells in lines_of(path, form):
        if len(cells) != form.width:
            raise DataFileError(f"{path}: {ragged_line(line, len(cells), form)}")
        rows.append(cells)
    if not rows:
        raise DataFileError(f"{path} has no rows. Write one line per row.")
    if form.encoding == "latin-1":
        warnings.warn(f"{path} is not UTF-8 and is read as Latin-1.", stacklevel=4)
    names = form.columns or tuple(f"x{number}" for number in range(form.width))
    columns = {
        name: ([cell.strip() for cell in cells], form.delimiter != ",")
        for name, cells in zip(names, zip(*rows, strict=True), strict=True)
    }
    return _without_index(path, columns)


def _with_header(path, form: CsvForm) -> CsvForm:
    """Return the form without a header if the first line looks like the others.

    A first line with words is a header, unless each of its cells occurs again below it or is a number there too.
    """
    if form.columns is None:
        return form
    below = []
    for number, (_, cells) in enumerate(lines_of(path, form)):
        if number == 1000 or len(cells) != form.width:
            break
        below.append([cell.strip() for cell in cells])
    columns = list(zip(*below, strict=True))
    is_data = bool(columns) and all(
        cell in seen or (_is_number(cell) and all(map(_is_number_or_hole, seen)))
        for cell, seen in zip(form.columns, columns, strict=True)
    )
    if not is_data:
        return form
    warnings.warn(
        f"{path} has no header: its first line looks like the others. The columns are named x0, x1, ...", stacklevel=5
    )
    return form._replace(columns=None)


def _without_index(path, columns):
    """Leave out a first column without a name that holds the row numbers, as pandas writes an index."""
    first, (cells, _) = next(iter(columns.items()))
    if first == "" and len(columns) > 1 and cells == [str(number) for number in range(len(cells))]:
        warnings.warn(
            f"{path}: the first column has no name and holds the row numbers, as pandas writes an index; it is left "
            "out.",
            stacklevel=4,
        )
        return dict(list(columns.items())[1:])
    return columns


def _typed(cells: list[str], has_decimal_comma: bool = False, is_text: bool = False):
    """Return storage and entries of a column, whose type is found from all its cells unless it is known to be text.

    Example:
        >>> storage, (values, missing) = _typed(["1", "?", "3"])
        >>> storage.type, values.tolist(), missing.tolist()
        ('Int64', [1.0, nan, 3.0], [False, True, False])
    """
    numbers = None if is_text else _decimals(cells)
    if numbers is not None:
        return Storage(NUMBER, "Float64", "float64"), (numbers, np.isnan(numbers))
    observed = {cell for cell in cells if cell.lower() not in _MISSING}
    others = observed - {"?"}
    if not others or _parser(others, has_decimal_comma) or all(map(_has_letter_or_digit, others)):
        observed = others
    found = _parser(observed, has_decimal_comma) if observed else (Storage(NUMBER, "Float64", "float64"), float)
    if is_text and observed:
        found = None
    missing = np.array([cell not in observed for cell in cells])
    if found is None:
        values = np.array(cells, object)
        values[missing] = None
        return Storage(TEXT, "String", "str"), (values, missing)
    storage, parse = found
    parsed = {cell: parse(cell) for cell in observed}
    hole = 0 if storage.group == DATE else np.nan
    values = np.array([parsed.get(cell, hole) for cell in cells], np.int64 if storage.group == DATE else float)
    return storage, (values, missing)


def _decimals(cells):
    """Return numbers, read at once by NumPy, if all cells are numbers and some are not whole; otherwise None."""
    try:
        numbers = np.array(cells, float)
    except ValueError:
        return None
    with np.errstate(invalid="ignore"):
        return numbers if np.any(numbers % 1 > 0) and not any("_" in cell for cell in cells) else None


def _parser(cells: set[str], has_decimal_comma):
    """Return the storage of cells and a function that reads one; None if they are words."""
    if all(cell.lower() in _TRUTH for cell in cells):
        return Storage(BOOLEAN, "Boolean", "bool"), lambda cell: _TRUTH[cell.lower()]
    if any(map(_LEADING_ZERO.fullmatch, cells)):
        return None
    if all(map(_WHOLE.fullmatch, cells)) and max(abs(int(cell)) for cell in cells) <= 2**53:
        return Storage(NUMBER, "Int64", "int64"), float
    number = _comma_number if has_decimal_comma else float
    if all(_is_number(cell, number) for cell in cells) and not all(map(_WHOLE.fullmatch, cells)):
        return Storage(NUMBER, "Float64", "float64"), number
    for form, unit, native in ((_DAY, "D", "datetime64[s]"), (_MOMENT, "us", "datetime64[us]")):
        if all(map(form.fullmatch, cells)) and all(map(_is_date, cells)):
            kind = "Date" if unit == "D" else "Datetime"
            return Storage(DATE, kind, native, unit), lambda cell, unit=unit: np.datetime64(cell, unit).astype(int)
    return None


def _comma_number(cell):
    return float(cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell)


def _is_number(cell, number: Callable[[str], float] = float):
    try:
        number(cell.replace("_", "no"))  # Python reads 1_000 as a number
    except ValueError:
        return False
    return True


def _is_number_or_hole(cell):
    return cell.lower() in _MISSING or cell == "?" or _is_number(cell)


def _is_date(cell):
    try:
        datetime.datetime.fromisoformat(cell)
    except ValueError:
        return False
    return True


def _has_letter_or_digit(cell):
    return any(map(str.isalnum, cell))
