"""Tables as text: numbers, an optional header line, empty cells for missing values, and optionally a label column.

Cells are separated by commas, semicolons or tabs, whichever the first lines use. With semicolons and tabs, a comma in a
number is a decimal comma, as spreadsheets in much of Europe write it. Files may be compressed (`.csv.gz`).
"""

import codecs
import csv
import gzip
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aevb.errors import no_column

_MISSING = {"", "na", "nan", "null", "?"}
_WORDS = {"true": 1.0, "false": 0.0}  # as in frames of booleans
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?[./]\d\d?[./]\d{2,4}( .*)?")


class CsvError(ValueError):
    """A file cannot be read; the message says why, and in which line (counted from 1) and column."""


class CsvContents(NamedTuple):
    """The contents of a file."""

    rows: np.ndarray  # (N, D); NaN where a cell is empty
    columns: tuple[str, ...] | None
    labels: np.ndarray | None


class CsvForm(NamedTuple):
    """How a file is written."""

    encoding: str
    delimiter: str
    columns: tuple[str, ...] | None  # if the first line is a header
    width: int


def read_csv(path: Path, label_column: str | None = None, drop_columns: Sequence[str] = ()) -> CsvContents:
    """Read a text file of numbers; a warning says where it was interpreted (Latin-1, decimal commas, an index).

    The first line is a header if any of its cells is not a number. A first column without a name that holds the row
    numbers, as pandas writes an index, is left out.

    Args:
        path: The file, in UTF-8 or else Latin-1.
        label_column: Name of a column of labels (or its index, from 0), which may be words.
        drop_columns: Names (or indices) of columns to leave out, which may be words.

    Raises:
        CsvError: The message names the line and the column, or says that there are no rows.
    """
    form = read_form(path)
    if form.encoding == "latin-1":
        warnings.warn(f"{path} is not UTF-8 and is read as Latin-1.", stacklevel=2)
    label = None if label_column is None else _place(form, label_column)
    left_out = {label, *(_place(form, name) for name in drop_columns)}
    places = [place for place in range(form.width) if place not in left_out]
    rows, labels = _quickly(path, form) if len(places) == form.width else None, None
    if rows is None or not len(rows):
        rows, labels = _carefully(path, form, places, label)
    if form.columns is not None and form.columns[0] == "" and places[0] == 0:
        rows, places = _without_index(path, rows), places[1:]
    columns = None if form.columns is None else tuple(form.columns[place] for place in places)
    return CsvContents(rows, columns, labels)


def _without_index(path, rows):
    """Return rows without their first column, which has no name; refuse it if it does not hold the row numbers."""
    if rows.shape[1] == 1 or not np.array_equal(rows[:, 0], np.arange(len(rows))):
        raise CsvError(
            "its first column has no name and does not hold the row numbers 0, 1, ...; give it a name, or, if it is "
            "the index of a pandas data frame, write the file again with to_csv(path, index=False)."
        )
    warnings.warn(
        f"{path}: the first column has no name and holds the row numbers, as pandas writes an index; it is left out.",
        stacklevel=3,
    )
    return rows[:, 1:]


def read_form(path: Path) -> CsvForm:
    """Return how a file is written, judging by its first lines."""
    encoding = _encoding(path)
    delimiter = _delimiter(path, encoding)
    with _open_text(path, encoding) as file:
        first = next(csv.reader(file, delimiter=delimiter), [])
    values = [_value(cell, delimiter) for cell in first]
    is_index_header = first[:1] == [""] and first[1:] == [str(number) for number in range(len(first) - 1)]
    are_numbers = all(value is not None and not np.isinf(value) for value in values) and not is_index_header
    columns = None if are_numbers else tuple(cell.strip() for cell in first)
    _check_names_differ(columns or ())
    return CsvForm(encoding, delimiter, columns, len(first))


def _check_names_differ(columns):
    """Refuse repeated names: columns are matched by name when the model is used."""
    for name, count in Counter(columns).items():
        if count > 1:
            raise CsvError(
                f"the first line, read as a header because not all its cells are numbers, repeats the column name "
                f"{name!r} ({count} times). Give each column a different name."
            )


def _encoding(path):
    """Return "utf-8-sig", or "latin-1" for text that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf8 = True
    with _open(path, "rb") as file:
        while block := file.read(2**20):
            if b"\0" in block:
                raise CsvError("it is not a text file in UTF-8 or Latin-1; save it as CSV in UTF-8.")
            if is_utf8:
                try:
                    decoder.decode(block)
                except UnicodeDecodeError:
                    is_utf8 = False
    return "utf-8-sig" if is_utf8 else "latin-1"


def _delimiter(path, encoding):
    """Return the separator that the first lines agree on; with semicolons or tabs, a comma is part of a number."""
    with _open_text(path, encoding) as file:
        lines = [line for line in islice(file, 10) if line.strip()]
    for delimiter in ";\t":
        widths = [len(cells) for cells in csv.reader(lines, delimiter=delimiter)]
        if widths and widths[0] > 1 and (len(set(widths)) == 1 or "," not in lines[0]):
            return delimiter
    return ","


def _open(path, mode, **options) -> Any:
    opens = gzip.open if path.suffix.lower() == ".gz" else open
    return opens(path, mode, **options)


def _open_text(path, encoding) -> Any:
    return _open(path, "rt", newline="", encoding=encoding)


def _quickly(path, form):
    """Read the numbers with NumPy; return None if there is anything else, which `_carefully` then locates."""
    try:
        with warnings.catch_warnings(), _open_text(path, form.encoding) as file:
            warnings.simplefilter("ignore", UserWarning)  # about a file without rows, which is refused later
            skip = int(form.columns is not None)
            return np.loadtxt(file, delimiter=form.delimiter, skiprows=skip, ndmin=2, comments=None)
    except ValueError:
        return None


def _carefully(path, form, places, label):
    """Return the numbers in some columns, and the labels or None."""
    rows, labels, commas, words = [], [], 0, {}
    for line, cells in lines_of(path, form):
        if len(cells) != form.width:
            raise CsvError(ragged_line(line, len(cells), form))
        if label is not None:
            labels.append(cells[label].strip())
        values = [_value(cells[place], form.delimiter) for place in places]
        for place, value in zip(places, values, strict=True):
            if value is None:
                words.setdefault(place, (line, cells[place].strip()))
        commas += form.delimiter != "," and any("," in cells[place] for place in places)
        rows.append(values)
    if words:
        raise CsvError(_no_numbers(words, form))
    if not rows or not rows[0]:
        size = f"{os.path.getsize(path):,} bytes"
        raise CsvError(f"it has no {'columns' if rows else 'rows'} of numbers ({size}); write one line per row.")
    if commas:
        warnings.warn(f"{path}: the comma in its numbers is read as a decimal comma (1,5 as 1.5).", stacklevel=3)
    return np.array(rows, float), np.array(labels) if label is not None else None


def lines_of(path: Path, form: CsvForm) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that are not empty, without the header, each with its number in the file, from 1."""
    with _open_text(path, form.encoding) as file:
        reader = csv.reader(file, delimiter=form.delimiter)
        if form.columns is not None:
            next(reader)
        for cells in reader:
            if cells:
                yield reader.line_num, cells


def _value(cell, delimiter) -> float | None:
    """Return the number in a cell, NaN if it is missing, None if it is something else."""
    cell = cell.strip()
    lower = cell.lower()
    if lower in _MISSING:
        return np.nan
    if lower in _WORDS:
        return _WORDS[lower]
    if delimiter != "," and _DECIMAL_COMMA.fullmatch(cell):
        cell = cell.replace(",", ".")
    try:
        return float(cell)
    except ValueError:
        return None


def ragged_line(line: int, width: int, form: CsvForm) -> str:
    """Say that a line has another number of cells than the first."""
    names = {",": "commas", ";": "semicolons", "\t": "tabs"}
    return (
        f"line {line} has {width} cells separated by {names[form.delimiter]}, but the first line has {form.width}; "
        "all lines need the same number of cells, and cells that contain the separator need quotes."
    )


def _no_numbers(words, form):
    """Return what is wrong with columns that contain words, given the line and the text of the first in each."""
    names = {place: form.columns[place] if form.columns else str(place) for place in words}
    first, (line, cell) = next(iter(words.items()))
    column = f"column {names[first]!r}" if form.columns else f"column {first}"
    one = len(words) == 1
    drop = f"leave {'the column' if one else 'columns'} out (--drop-columns {','.join(names.values())})"
    advice = f"encode words as numbers, {drop}, or name {'it' if one else 'one'} as the label column (--label-column)"
    if _DATE.fullmatch(cell) and one:
        advice = f"convert dates to numbers, such as days since the first one, or {drop}"
    elif ";" in cell or "\t" in cell:
        advice = "separate the cells of all lines with commas, or all with semicolons"
    others = [f"{name!r} (line {words[place][0]}: {words[place][1][:40]!r})" for place, name in names.items()][1:]
    also = f"; other such columns: {', '.join(others)}" if others else ""
    return f"line {line}, {column}: {cell[:40]!r} is not a number{also}; {advice}."


def _place(form, column):
    """Return the index of a column, given its name or its index."""
    if form.columns is not None and column in form.columns:
        return form.columns.index(column)
    if column.isdecimal() and int(column) < form.width:
        return int(column)
    raise CsvError(no_column(column, form.columns or [str(number) for number in range(form.width)]))
