"""Comma-separated values: numbers, an optional line of names, empty cells for what is missing, one column of labels."""

import csv
import os
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from aevb.errors import no_column

_MISSING = {"", "na", "nan", "null", "?"}


class CsvError(ValueError):
    """What is wrong with a file, and in which line and column."""


class CsvContents(NamedTuple):
    """What a file holds."""

    rows: np.ndarray  # (N, D); NaN where a cell is empty
    columns: tuple[str, ...] | None
    labels: np.ndarray | None


def read_csv(path: Path, label_column: str | None = None) -> CsvContents:
    """Read a file of comma-separated numbers.

    The first line is one of names if any of its cells is not a number.

    Args:
        path: The file, UTF-8.
        label_column: Name of a column (or its number, from 0) of labels, which may be words.

    Raises:
        CsvError: Naming the line and the column, or saying that there are no rows.
    """
    names, width = read_header(path)
    if label_column is None and (quick := _quickly(path, skip=names is not None)) is not None and len(quick):
        return CsvContents(quick, names, None)
    return _carefully(path, names, width, label_column)


def read_header(path: Path) -> tuple[tuple[str, ...] | None, int]:
    """Return the names of the columns, if the first line is one of names, and their number."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        first = next(csv.reader(file), [])
    return None if _are_numbers(first) else tuple(name.strip() for name in first), len(first)


def _quickly(path, skip):
    """Return the numbers by NumPy's reader, or None if the file has anything else: then it matters what and where."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a file without rows, which is refused later
            return np.loadtxt(path, delimiter=",", skiprows=int(skip), ndmin=2, encoding="utf-8-sig", comments=None)
    except ValueError:
        return None


def _carefully(path, names, width, label_column):
    label = _label_place(names, width, label_column)
    rows, labels = [], []
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        if names is not None:
            next(reader)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != width:
                raise CsvError(
                    f"line {reader.line_num} has {len(cells)} cells, the first line has {width}; give each as many."
                )
            if label is not None:
                labels.append(cells.pop(label).strip())
            rows.append([_number(cell, reader.line_num, place, names, label) for place, cell in enumerate(cells)])
    if not rows or not rows[0]:
        size = f"{os.path.getsize(path):,} bytes"
        raise CsvError(f"it has no {'columns' if rows else 'rows'} of numbers ({size}); give a line for each row.")
    if names is not None and label is not None:
        names = names[:label] + names[label + 1 :]
    return CsvContents(np.array(rows), names, np.array(labels) if label is not None else None)


def _number(cell, line, place, names, label):
    cell = cell.strip()
    if cell.lower() in _MISSING:
        return np.nan
    try:
        return float(cell)
    except ValueError:
        place += label is not None and place >= label
        column = f"column {names[place]!r}" if names else f"column {place}"
        advice = "encode words as numbers, or name the column of labels (--label-column)"
        if ";" in cell or "\t" in cell:
            advice = "separate cells by commas"
        raise CsvError(f"line {line}, {column}: {cell[:40]!r} is not a number; {advice}.") from None


def _label_place(names, width, label_column):
    if label_column is None:
        return None
    if names is not None and label_column in names:
        return names.index(label_column)
    if label_column.isdecimal() and int(label_column) < width:
        return int(label_column)
    raise CsvError(no_column(label_column, names or [str(number) for number in range(width)]))


def _are_numbers(cells):
    try:
        return all(cell.strip().lower() in _MISSING or np.isfinite(float(cell)) for cell in cells)
    except ValueError:
        return False
