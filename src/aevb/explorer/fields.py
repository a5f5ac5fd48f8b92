"""The columns of a table as a reader of the page sees them: controls, units, labels and digits."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from aevb.data.frames import ColumnFormat
from aevb.data.frames.cells import DATE
from aevb.data.frames.column_format import TIMES
from aevb.data.frames.stored import COUNTS, LABELS
from aevb.fitted import FittedModel
from aevb.models import LIKELIHOODS

MAX_DIGITS = 8
DATA_DIGITS = 4  # decimal places up to which those of the data are shown
ENDS = 0.002, 0.998  # quantiles at the ends of a slider
SKEWED = 0.05  # numbers from 0 with a smaller median, as a share of the slider, have one on a logarithmic scale
WIDE = 100  # counts with a larger range have a slider on a logarithmic scale
SPANS = {"days": 1, "hours": 24, "minutes": 1440, "seconds": 86_400}  # per day
MILLISECONDS = 86_400_000  # per day


def describe_fields(model: FittedModel, rows: np.ndarray, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return a description of each column of x, for its control and its text.

    A shown number is ``origin + factor * number``, of a number in the units of the model's columns; that of a date is
    in milliseconds since 1970. All entries but these two are in shown units.

    Args:
        model: The model.
        rows: (n, D), stored numbers of a table, or rows as the networks read them.
        names: Of the columns of other models; those without one are numbered.
    """
    if not model.is_table:
        return [_plain_field(model, place, values, names) for place, values in enumerate(rows.T)]
    return table_fields(model.format, rows)


def table_fields(format: Any, rows: np.ndarray) -> list[dict[str, Any]]:
    """Return the same for the columns of a table.

    Args:
        format: The format of the table, :class:`aevb.data.frames.TableFormat`.
        rows: (n, D), stored numbers.
    """
    fields = [_field(column, values) for column, values in zip(format.columns, rows.T, strict=False)]
    places = {column.name: place for place, column in enumerate(format.columns)}
    for name in format.modeled:
        fields.append(_levels(f"{name} is missing", ("no", "yes")) | {"about": places[name]})
    return fields


def _field(column: ColumnFormat, stored):
    if column.column.family in LABELS:
        return _levels(column.name, column.levels)
    values = column.column.in_units(stored[~np.isnan(stored)])
    is_whole = column.is_whole or column.column.family in COUNTS
    field = _number(column.name, values, is_whole)
    field["observed"] = [column.low, column.high]  # the range of draws
    if column.column.family == "bounded":
        field |= {"low": column.low, "high": column.high, "least": column.low, "most": column.high}
    elif column.column.family in COUNTS:
        field |= {"least": 0} | ({"scale": "log1p"} if field["high"] - field["low"] > WIDE else {})
    elif column.column.kind.has_cells:
        is_skewed = field["low"] >= 0 and np.median(values) < SKEWED * field["high"]
        field |= {"scale": "log1p"} if is_skewed else {}
    elif column.column.family == "lognormal":
        field |= {"least": min(column.low, field["low"]) / 1000, "scale": "log"}
    return _in_time(field, column) if column.storage.group in TIMES else field


def _in_time(field, column):
    """Return the field of dates, or of durations in the longest unit of which they are multiples."""
    step = column.step * column.days_per_tick
    if column.storage.group == DATE:
        per_day, facts = MILLISECONDS, {"kind": "date", "has_time": step % 1 > 0, "zone": column.storage.zone or ""}
    else:
        unit = next(
            (unit for unit, parts in SPANS.items() if abs(step * parts - round(step * parts)) < 1e-9), "seconds"
        )
        per_day, facts = SPANS[unit], {"unit": unit}
    origin, factor = column.origin * column.days_per_tick * per_day, step * per_day
    low, high, *observed = (origin + factor * value for value in (field["low"], field["high"], *field["observed"]))
    ends = {"low": low, "high": high, "observed": observed}
    return field | facts | ends | {"origin": origin, "factor": factor, "digits": 0 if factor >= 1 else MAX_DIGITS}


def _plain_field(model, place, values, names):
    name = str(names[place]) if place < len(names) else f"column {place + 1}"
    if model.likelihood == "bernoulli" and np.isin(values, (0, 1)).all():
        return _levels(name, (0, 1))
    offset = 0.0 if model.matrix.offset is None else float(model.matrix.offset[place])
    field = _number(name, values + offset) | {"origin": offset}
    if LIKELIHOODS[model.likelihood].unit_interval:
        return field | {"low": 0, "high": 1, "least": 0, "most": 1}
    middle, width = float(values.mean()) + offset, 3.2 * (float(values.std()) or 1.0)
    return field | {"low": middle - width, "high": middle + width}


def _levels(name, levels):
    return {"name": name, "kind": "levels", "levels": [str(level) for level in levels]}


def _number(name, values, is_whole=False) -> dict[str, Any]:
    low, high = (float(end) for end in (np.quantile(values, ENDS) if len(values) else (0, 1)))
    if not low < high:
        low, high = low - 1, high + 1
    if is_whole:
        low, high = float(np.floor(low)), float(np.ceil(high))
    return {
        "name": name,
        "kind": "number",
        "low": low,
        "high": high,
        "digits": 0 if is_whole else _digits(values),
        "is_whole": is_whole,
        "scale": "linear",
        "origin": 0.0,
        "factor": 1.0,
    }


def _digits(values):
    """Return the decimal places of numbers, or of a hundredth of their standard deviation if they have many.

    Example:
        >>> _digits(np.array([39.1, 40.5])), _digits(np.array([1 / 3, 1 / 7]))
        (1, 4)
    """
    std = float(values.std()) or 1.0
    limit = np.minimum(1e-6 * np.abs(values), std / 200)  # rounding of float32, but not of what is in the data
    for digits in range(DATA_DIGITS + 1):
        if np.all(np.abs(values - np.round(values, digits)) <= limit):
            return digits
    return int(np.clip(np.ceil(2 - np.log10(std)), 0, MAX_DIGITS))
