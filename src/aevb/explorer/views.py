"""What the report and the interactive page show of sequences: observations, bands, forecasts and latent paths.

All of it is computed from draws: at observed steps of p(x_t|z_t) with z from q(z|x), after the end of forecasts.
"""

import math
import re
from typing import NamedTuple

import numpy as np

from aevb.data.frames import ColumnFormat
from aevb.data.frames.stored import LABELS
from aevb.data.sequence_format import Encoded
from aevb.data.series import SequenceData
from aevb.fitted import FittedModel
from aevb.fitted.forecasts import forecast
from aevb.fitted.sequences import replicate

LEVELS = (0.5, 0.8, 0.95)  # of the bands
# Of the lower ends, the median, and the upper ends.
QUANTILES = tuple(sorted([0.5, *((1 + sign * level) / 2 for level in LEVELS for sign in (-1, 1))]))
NUM_DRAWS = 200
MAX_LINES, MAX_ROWS = 8, 128  # columns of numbers, and rows of a roll
MANY_ROWS = 20  # from which those of a roll that are never used are left out
MAX_LENGTH = 500  # steps before the end
FEW_STEPS, MANY_STEPS = 4, 24  # of forecasts
MAX_PADDING = 4  # times the steps that exist
YES_AND_NO = ({"False", "True"}, {"0", "1"}, {"0.0", "1.0"}, {"no", "yes"})


# Days from and to, of times between steps that have a name.
DAYS = {
    "minute": (1 / 1440, 1 / 1440),
    "hour": (1 / 24, 1 / 24),
    "day": (1, 1),
    "week": (7, 7),
    "month": (28, 31),
    "quarter": (90, 92),
    "year": (365, 366),
}


class Panel(NamedTuple):
    """A column of numbers as a line with bands, or labels as a roll: a row for each, with its probability over time.

    Args:
        name: Of the column.
        rows: What the rows of a roll are; () for a line.
        observed: (T + L, 1), numbers in the user's units; or (T + L, R), 1 for what was observed, 0 else; NaN where
            missing. The model does not know the last L steps.
        expected: (T + steps, Q), quantiles; or (T + steps, R), probabilities.
    """

    name: str
    rows: tuple[str, ...]
    observed: np.ndarray
    expected: np.ndarray


class View(NamedTuple):
    """One sequence.

    Args:
        name: Of the sequence.
        positions: (T + steps,), the time of each step, in steps or in units of the median gap; 0 for the last known.
        times: (T,), when each known step was, as text; None if this is not known.
        panels: Its columns.
        path: (T, 2), the smoothed states in the plane.
        later: (L,), the times of steps that were observed after the T that the model knows.
    """

    name: str
    positions: np.ndarray
    times: list[str] | None
    panels: list[Panel]
    path: np.ndarray
    later: np.ndarray

    @property
    def length(self) -> int:
        """T."""
        return len(self.path)


class Views(NamedTuple):
    """Several sequences, with what their pictures have in common."""

    sequences: list[View]
    axes: tuple[str, str]  # of the plane
    steps: int  # of the longest forecast
    unit: str  # of times: "step" if they are regular, otherwise the typical time between two steps, such as "month"
    num_hidden: int  # columns that are not shown


def views_of(
    model: FittedModel, data: SequenceData, most: int, steps: int | None = None, known: np.ndarray | None = None
) -> Views:
    """Return what is shown of the first sequences.

    Args:
        model: The model.
        data: Its sequences.
        most: Number of sequences.
        steps: Of the forecasts; None for a third of the median length, from 4 to 24. Models with controls, which are
            not known after the end, have none.
        known: How many of the first steps the model is given, for each of these sequences; None for all. Forecasts then
            end with what was observed later.
    """
    whole = padded_together(data.test.some(np.arange(min(most, len(data.test.lengths)))))
    encoded = whole if known is None else whole.first(known)
    if steps is None:
        steps = int(np.clip(np.median(encoded.lengths) // 3, FEW_STEPS, MANY_STEPS))
    steps = 0 if encoded.controls is not None else steps
    _, draws, states = replicate(model, encoded, NUM_DRAWS)
    if steps:
        forecasts = forecast(model, encoded, steps, NUM_DRAWS)
        draws = [np.concatenate(parts, axis=1) for parts in zip(draws, forecasts, strict=True)]
    kept = _kept_columns(model.format.columns)
    paths, axes = _in_a_plane(states, encoded)
    used = _used_rows(model.format.columns, whole)
    views = []
    for number, drawn in enumerate(draws):
        length = int(encoded.lengths[number])
        first = max(0, length - MAX_LENGTH)
        observed, later = whole.values[number][first:], np.cumsum(whole.elapsed[number][length:])
        num_later = steps if known is None else min(steps, math.ceil(later.max(initial=0)))
        drawn = np.asarray(drawn[:, first : length + num_later], np.float64)
        panels = _panels(model.format.columns, kept, used, observed, drawn)
        times = None if data.times is None else list(data.times[number][first:length])
        positions = _positions(encoded.elapsed[number][first:], num_later)
        views.append(View(data.names[number], positions, times, panels, paths[number][first:], later))
    numbers = [column for column in model.format.columns if column.column.family not in LABELS]
    return Views(views, axes, steps, _unit(model.format.time_unit, data.times), max(0, len(numbers) - MAX_LINES))


def _unit(time_unit: float | None, times) -> str:
    """Return what the typical time between two steps is called; that of dates is in seconds."""
    if time_unit is None:
        return "step"
    if times is not None and re.match(r"\d{4}-\d\d", str(times[0][0])):
        days = time_unit / 86_400
        return next((name for name, (low, high) in DAYS.items() if low <= days <= high), "median gap")
    return "median gap"


def padded_together(encoded: Encoded, at_least: int = 0) -> Encoded:
    """Return sequences that are padded to one length, unless that would multiply their steps by more than four.

    A report or a page then needs one program per task instead of one per length.
    """
    length, n = max(int(encoded.lengths.max()), at_least), len(encoded.lengths)
    return encoded._replace(padded_to=length) if n * length <= MAX_PADDING * encoded.lengths.sum() else encoded


def _positions(elapsed, steps):
    before = np.cumsum(elapsed)
    return np.concatenate([before - before[-1], np.arange(1, steps + 1)])


def _kept_columns(columns):
    """Return the places of the columns of numbers that are shown."""
    return [place for place, column in enumerate(columns) if column.column.family not in LABELS][:MAX_LINES]


def _used_rows(columns, encoded: Encoded):
    """Return the places of the binary columns that are shown, in one roll; of many, without those never used."""
    places = [place for place, column in enumerate(columns) if column.column.family == "bernoulli"]
    if len(places) > MANY_ROWS:
        seen = np.concatenate(encoded.values)[:, places] == 1
        used = np.flatnonzero(seen.any(axis=0))
        places = places[used.min() : used.max() + 1] if len(used) else places
    return places[:MAX_ROWS]


def _panels(columns: tuple[ColumnFormat, ...], kept, binary, observed, draws):
    """Return the panels of one sequence, from stored numbers (T, D) and draws of them (S, T + steps, D)."""
    panels = []
    for place in kept:
        in_units = columns[place].column.in_units
        bands = np.quantile(in_units(draws[..., place]), QUANTILES, axis=0).T
        panels.append(Panel(columns[place].name, (), in_units(observed[:, [place]]), bands))
    if binary:
        names = tuple(_name_of(columns[place]) for place in binary)
        panels.append(Panel(_heading(names), names, observed[:, binary], draws[..., binary].mean(axis=0)))
    for place, column in enumerate(columns):
        if column.column.family in LABELS and column.column.family != "bernoulli":
            codes = np.arange(len(column.levels))[:MAX_ROWS]
            seen = np.where(np.isnan(observed[:, [place]]), np.nan, observed[:, [place]] == codes)
            shares = (draws[..., [place]] == codes).mean(axis=0)
            panels.append(Panel(column.name, tuple(str(level) for level in column.levels[:MAX_ROWS]), seen, shares))
    return panels


def _heading(names):
    return names[0] if len(names) == 1 else f"{len(names)} binary columns"


def _name_of(column: ColumnFormat):
    """Return what a binary column says when it is 1."""
    levels = [str(level) for level in column.levels]
    return column.name if set(levels) in YES_AND_NO or len(levels) < 2 else f"{column.name} = {levels[1]}"


def _in_a_plane(states, encoded: Encoded):
    """Return states (T, J) in a plane, (T, 2), and the names of its axes: two variables, or principal components."""
    J = states[0].shape[1]
    if J == 1:
        times = [_positions(elapsed, 0) for elapsed in encoded.elapsed]
        return [np.stack([t, z[:, 0]], axis=1) for t, z in zip(times, states, strict=True)], ("time", "z")
    if J == 2:
        return [np.asarray(z, np.float64) for z in states], ("z₁", "z₂")
    every = np.concatenate(states).astype(np.float64)
    mean = every.mean(axis=0)
    _, sizes, directions = np.linalg.svd(every - mean, full_matrices=False)
    if len(sizes) < 2:  # a single step
        directions, sizes = np.eye(J), np.ones(J)
    shares = sizes**2 / max(np.sum(sizes**2), 1e-30)
    first, second = (f"principal component {k + 1} ({shares[k]:.0%} of the variance)" for k in range(2))
    return [(z - mean) @ directions[:2].T for z in states], (first, second)
