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
from collections.abc import Iterator
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


def read_csv(path: Path, label_column: str | None = None) -> CsvContents:
    """Read a text file of numbers; a warning says where it was interpreted (Latin-1, decimal commas).

    The first line is a header if any of its cells is not a number.

    Args:
        path: The file, in UTF-8 or else Latin-1.
        label_column: Name of a column of labels (or its index, from 0), which may be words.

    Raises:
        CsvError: The message names the line and the column, or says that there are no rows.
    """
    form = read_form(path)
    if form.encoding == "latin-1":
        warnings.warn(f"{path} is not UTF-8 and is read as Latin-1.", stacklevel=2)
    if label_column is None and (quick := _quickly(path, form)) is not None and len(quick):
        return CsvContents(quick, form.columns, None)
    return _carefully(path, form, label_column)


def read_form(path: Path) -> CsvForm:
    """Return how a file is written, judging by its first lines."""
    encoding = _encoding(path)
    delimiter = _delimiter(path, encoding)
    with _open_text(path, encoding) as file:
        first = next(csv.reader(file, delimiter=delimiter), [])
    values = [_value(cell, delimiter) for cell in first]
    are_numbers = all(value is not None and not np.isinf(value) for value in values)
    columns = None if are_numbers else tuple(cell.strip() for cell in first)
    _check_names_differ(columns or ())
    return CsvForm(encoding, delimiter, columns, len(first))


def _check_names_differ(columns):
    """Refuse repeated names: columns are matched by name when the model is used."""
    for name, count in Counter(columns).items():
        if count > 1:
            raise CsvError(
                f"the first line, read as a header because not all its cells are numbers, repeats the column name "
                f"{name!r} ({count} times). Give each column a name of its own."
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


def _carefully(path, form, label_column):
    label = _label_place(form, label_column)
    rows, labels, commas = [], [], 0
    for line, cells in _lines(path, form):
        if len(cells) != form.width:
            raise CsvError(_ragged(line, len(cells), form))
        if label is not None:
            labels.append(cells.pop(label).strip())
        values = [_value(cell, form.delimiter) for cell in cells]
        if None in values:
            raise CsvError(_no_number(line, cells, values.index(None), form, label))
        commas += form.delimiter != "," and any("," in cell for cell in cells)
        rows.append(values)
    if not rows or not rows[0]:
        size = f"{os.path.getsize(path):,} bytes"
        raise CsvError(f"it has no {'columns' if rows else 'rows'} of numbers ({size}); write one line per row.")
    if commas:
        warnings.warn(f"{path}: the comma in its numbers is read as a decimal comma (1,5 as 1.5).", stacklevel=3)
    columns = form.columns
    if columns is not None and label is not None:
        columns = columns[:label] + columns[label + 1 :]
    return CsvContents(np.array(rows, float), columns, np.array(labels) if label is not None else None)


def _lines(path, form) -> Iterator[tuple[int, list[str]]]:
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


def _ragged(line, width, form):
    names = {",": "commas", ";": "semicolons", "\t": "tabs"}
    return (
        f"line {line} has {width} cells separated by {names[form.delimiter]}, but the first line has {form.width}; "
        "all lines need the same number of cells, and cells that contain the separator need quotes."
    )


def _no_number(line, cells, place, form, label):
    cell = cells[place].strip()
    place += label is not None and place >= label
    column = f"column {form.columns[place]!r}" if form.columns else f"column {place}"
    advice = "encode words as numbers, leave the column out, or name it as the label column (--label-column)"
    if _DATE.fullmatch(cell):
        advice = "convert dates to numbers, such as days since the first one, or leave the column out"
    elif ";" in cell or "\t" in cell:
        advice = "separate the cells of all lines with commas, or all with semicolons"
    return f"line {line}, {column}: {cell[:40]!r} is not a number; {advice}."


def _label_place(form, label_column):
    if label_column is None:
        return None
    if form.columns is not None and label_column in form.columns:
        return form.columns.index(label_column)
    if label_column.isdecimal() and int(label_column) < form.width:
        return int(label_column)
    raise CsvError(no_column(label_column, form.columns or [str(number) for number in range(form.width)]))
