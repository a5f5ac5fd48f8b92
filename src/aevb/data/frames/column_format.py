"""How one column of a frame becomes stored numbers, and stored numbers become that column."""

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import logit

from aevb.data.frames.cells import BOOLEAN, DATE, DURATION, EMPTY, NUMBER, TEXT, WORDS, Cells, Storage
from aevb.data.frames.kinds import Decision, Facts
from aevb.data.frames.stored import (
    COUNTS,
    LABELS,
    decimals_of,
    learn_label_column,
    learn_number_column,
    natural_ends,
    numbers_of,
    without_rounding_error,
)
from aevb.data.frames.ticks import days_per_tick, longest_step
from aevb.errors import shown
from aevb.models.column import Column

TIMES = (DATE, DURATION)


@dataclass(frozen=True)
class ColumnFormat:
    """One column: how it is stored in a frame and by a model.

    Args:
        column: Its family and unit.
        storage: How the frame stored it.
        kind: What it is taken for: a key of :data:`~aevb.data.frames.KINDS`.
        reason: Why.
        missing: The share of missing entries.
        levels: The labels, in the order of their codes; () for numbers.
        low: The smallest number that was observed; of dates, in steps since the first; of shares, their lower end.
        high: The largest, or the upper end.
        is_whole: Whether all numbers are whole, so that draws are rounded and kept between `low` and `high`.
        origin: Of dates, the first one, in units since 1970.
        step: Of dates, the number of units between two of them is a multiple of this.
        decimals: Of numbers, the most decimals that one has; None if they have many, or if there are few numbers.
    """

    column: Column
    storage: Storage
    kind: str
    reason: str
    missing: float
    levels: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    is_whole: bool = False
    origin: int = 0
    step: int = 1
    decimals: int | None = None

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    @property
    def days_per_tick(self) -> float:
        """Of dates and durations, the length of the unit in which they are stored, in days."""
        return days_per_tick(self.storage.unit)

    @property
    def is_missing(self) -> Column:
        """The binary column that says which entries of this one are missing."""
        return Column(f"{self.name} is missing", "bernoulli", start=(float(logit(self.missing)),))

    @classmethod
    def learn(cls, facts: Facts, decision: Decision) -> "ColumnFormat":
        """Return the format of a column, once its kind is decided."""
        cells, kind = facts.cells, decision.kind
        known = {
            "storage": cells.storage,
            "kind": kind,
            "reason": decision.reason,
            "missing": float(cells.missing.mean()),
        }
        if kind in ("binary", "categorical", "ordinal"):
            levels = tuple(_label(level, cells) for level in facts.levels)
            return cls(learn_label_column(cells.name, kind, facts.counts), levels=levels, **known)
        origin, step, is_whole = 0, 1, facts.is_whole
        values = facts.observed
        if cells.group in TIMES:
            origin, step, is_whole = int(values.min()), longest_step(values, cells.storage.unit), True
            values = ((values - origin) // step).astype(float)
        family = "gaussian" if kind == "date" else kind
        column = learn_number_column(cells.name, family, values, is_whole)
        low, high = natural_ends(values) if kind == "bounded" else (float(values.min()), float(values.max()))
        known |= {"low": low, "high": high, "decimals": decimals_of(values)}
        return cls(column, is_whole=is_whole, origin=origin, step=step, **known)

    def encode(self, cells: Cells) -> np.ndarray:
        """Return the stored numbers (n,) of entries, NaN where they are missing.

        Raises:
            ValueError: The entries are of another type, or outside the range of the family.
        """
        if cells.group == EMPTY:
            return np.full(len(cells.values), np.nan)
        self._check_group(cells)
        if self.column.family in LABELS:
            return self._codes(cells)
        values = self._numbers(cells)
        self._check_range(values)
        return self.column.stored(values)

    def decode(
        self, stored: np.ndarray, kept: Cells | None = None, *, is_new: bool = True, is_observed: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return values (n,) as in :class:`~aevb.data.frames.cells.Cells`, and which are missing.

        Args:
            stored: (n,), NaN where missing.
            kept: Entries that are returned unchanged where they are observed.
            is_new: Whether they are new entries, which get as many decimals as those in training, and their range.
            is_observed: Whether they are entries of the user's data, which may lie outside of that range.
        """
        missing = np.isnan(stored)
        if self.column.family in LABELS:
            labels = np.empty(len(self.levels), object)
            labels[:] = self.levels
            codes = np.where(missing, 0, np.clip(np.rint(stored), 0, len(labels) - 1)).astype(int)
            values = labels[codes]
            values[missing] = None
        else:
            is_anywhere = is_observed and self.column.kind.has_cells
            ends = (-np.inf, np.inf) if is_anywhere else (self.low, self.high)
            values = numbers_of(self.column, np.where(missing, 0.0, stored), *ends)
            if self.is_whole or self.column.family in COUNTS:
                values = np.rint(values) if is_observed else np.clip(np.rint(values), self.low, self.high)
            else:
                values = without_rounding_error(values, self.high - self.low)
                if is_new and not is_observed and self.decimals is not None:
                    values = np.clip(np.round(values, self.decimals), self.low, self.high)
            if self.storage.group in TIMES:
                values = values.astype(np.int64) * self.step + self.origin
            else:
                values = np.where(missing, np.nan, values)
        return (values, missing) if kept is None else self._with_kept(values, missing, kept)

    def std_in_units(self, std: np.ndarray) -> np.ndarray:
        """Return standard deviations of stored numbers in the user's units.

        Those of "lognormal" and "bounded" columns are of the logarithm and of the log odds, those of dates in days; of
        labels there are none.
        """
        if self.column.family in LABELS:
            return np.full_like(std, np.nan)
        if self.column.family in COUNTS:
            return std
        days = self.step * self.days_per_tick if self.storage.group in TIMES else 1.0
        return std * self.column.scale * days

    def storage_of(self, kept: Cells | None) -> Storage:
        """Return how the column is stored, with these entries in it: as learned if that can hold them."""
        if kept is None or not self.storage.is_integer or self.column.family in LABELS or kept.group == EMPTY:
            return self.storage
        fits = np.all((kept.observed % 1 == 0) & (kept.observed >= self.low) & (kept.observed <= self.high))
        return self.storage if fits else kept.storage

    def _with_kept(self, values, missing, kept):
        """Return values with the observed entries of `kept`, unless they are labels that are not known."""
        observed = ~kept.missing
        if kept.group == EMPTY:
            return values, missing
        if self.column.family in LABELS:
            known = dict.fromkeys(self.levels)
            observed &= np.array([value in known for value in kept.values.tolist()])
            place = {level: level for level in self.levels}  # labels as they were learned: 1 rather than 1.0
            originals = np.array([place.get(value) for value in kept.values.tolist()] + [None], object)[:-1]
        else:
            originals = self._ticks(kept) if self.storage.group in TIMES else kept.values
        return np.where(observed, originals, values), missing & ~observed

    def _check_group(self, cells):
        """Refuse entries that are not what was learned: text for numbers, dates for text, ..."""
        numbers = {NUMBER, BOOLEAN}
        if self.column.family in LABELS and self.storage.group != TEXT:
            allowed = numbers
        else:
            allowed = numbers if self.storage.group in numbers else {self.storage.group}
        if cells.group not in allowed:
            how = (
                f", such as by pandas.read_csv(..., parse_dates=[{self.name!r}])" if self.storage.group == DATE else ""
            )
            raise ValueError(
                f"X: column {self.name!r} holds {WORDS[cells.group]} ({cells.storage.native}), but the model learned "
                f"{WORDS[self.storage.group]} ({self.storage.native}). Convert it to that type{how}."
            )
        if self.storage.group == DATE and (self.storage.zone is None) != (cells.storage.zone is None):
            have, had = (
                f"the time zone {zone}" if zone else "none" for zone in (cells.storage.zone, self.storage.zone)
            )
            raise ValueError(
                f"X: the dates of column {self.name!r} have {have}, but the model learned dates that have {had}. "
                "Convert them to the same form."
            )

    def _codes(self, cells):
        """Return the codes of labels; those that are not known are missing, with a warning."""
        code_of = {level: code for code, level in enumerate(self.levels)}
        values, inverse = cells.observed, slice(None)
        if values.dtype != object:
            values, inverse = np.unique(values, return_inverse=True)
        found = np.array([code_of.get(value, np.nan) for value in values.tolist()], float)
        codes = np.full(len(cells.values), np.nan)
        codes[~cells.missing] = found[inverse]
        self._warn_about_strangers(cells.observed[np.isnan(codes[~cells.missing])])
        return codes

    def _warn_about_strangers(self, strangers):
        if len(strangers):
            some = [f"{shown(_label(value), 40)} ({count:,})" for value, count in Counter(strangers).most_common(5)]
            known = ", ".join(shown(level, 40) for level in self.levels[:20]) + ", ..." * (len(self.levels) > 20)
            warnings.warn(
                f"X: column {self.name!r} has values that were not there in training, {', '.join(some)}; these "
                f"{len(strangers):,} entries count as missing. The known values are {known}.",
                UserWarning,
                stacklevel=6,
            )

    def _numbers(self, cells):
        """Return float64 numbers, of dates the steps since the first one; NaN where missing."""
        if self.storage.group not in TIMES:
            return cells.values.astype(float)
        return np.where(cells.missing, np.nan, (self._ticks(cells) - self.origin) / self.step)

    def _ticks(self, cells):
        """Return dates in this column's unit."""
        ticks = cells.values.astype(f"m8[{cells.storage.unit}]")
        return ticks.astype(f"m8[{self.storage.unit}]").astype(np.int64)

    def _check_range(self, values):
        """Refuse numbers that the family gives no probability."""
        column = self.column
        with np.errstate(invalid="ignore"):
            bad, needed = np.zeros(len(values), bool), ""
            if column.family == "lognormal":
                bad, needed = values <= 0, "numbers above 0"
            elif column.family == "bounded":
                bad = (values < self.low) | (values > self.high)
                needed = f"numbers from {self.low:g} to {self.high:g}"
            elif column.family in COUNTS:
                bad, needed = (values < 0) | (values % 1 > 0), "whole numbers from 0"
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(
                f"X: column {self.name!r} holds {values[row]:g} in row {row} ({bad.sum():,} such, rows counted from "
                f"0), but it is {self.kind!r}, which allows {needed}. Correct those entries, or mark them as missing."
            )

    def describe(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return asdict(self)

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "ColumnFormat":
        """Return the column format that was described."""
        facts = dict(description)
        column = dict(facts.pop("column"))
        storage = dict(facts.pop("storage"))
        return cls(
            column=Column.from_description(column),
            storage=Storage(**{**storage, "categories": tuple(storage["categories"])}),
            **{**facts, "levels": tuple(facts["levels"])},
        )


def _label(level, cells=None):
    """Return a label as Python's own type: whole numbers as int, true and false as bool."""
    if cells is not None and cells.group == BOOLEAN:
        return bool(level)
    if isinstance(level, float) and level.is_integer() and (cells is None or cells.storage.is_integer):
        return int(level)
    return level.item() if isinstance(level, np.generic) else level
