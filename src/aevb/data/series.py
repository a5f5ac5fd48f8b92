"""A file of sequences with a row for each step: the data of a run of `SequenceVAE`."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from aevb.arguments import check_parameter
from aevb.data.data_settings import settings_from
from aevb.data.datasets import Dataset
from aevb.data.frames import read_frame
from aevb.data.frames.cells import DATE, read_cells
from aevb.data.frames.containers import is_frame, open_frame, series_of
from aevb.data.frames.parts import without_columns
from aevb.data.own import WITH_LABEL_COLUMNS
from aevb.data.sequence_format import Encoded
from aevb.data.sequences import Sequences, by_sequence, check_times
from aevb.data.tables import ending_of
from aevb.errors import DataFileError, no_column, shown
from aevb.fitted import FittedModel


@dataclass(frozen=True)
class SeriesSettings:
    """Which file of sequences a run uses and how: the table [data] of a run's `config.toml`.

    Args:
        source: A .csv, .tsv or .parquet file with a row for each step.
        time: The column with the time of each row; None if steps are regular.
        sequence: The column that says to which sequence a row belongs; None for one sequence.
        drop_columns: Names of columns to leave out.
        test_fraction: Share of the sequences that is held out, rounded down.
        seed: Seed of the split.
    """

    source: str
    time: str | None = None
    sequence: str | None = None
    drop_columns: Sequence[str] = ()
    test_fraction: float = 0.1
    seed: int = 0

    estimator = "SequenceVAE"

    def __post_init__(self):
        for name in ("source", "time", "sequence"):
            if not isinstance(getattr(self, name), str | None):
                raise ValueError(f"{name}={shown(getattr(self, name))} is not allowed. Give text.")
        check_parameter("test_fraction", self.test_fraction, kind=float, low=0, high=0.9)
        check_parameter("seed", self.seed, kind=int, low=0, high=2**32 - 1)

    @classmethod
    def of(cls, table: dict[str, Any]) -> "SeriesSettings":
        """Return the settings in a table."""
        return settings_from(cls, table)

    def written(self) -> dict[str, Any]:
        """Return the table, with an absolute path."""
        return asdict(self) | {"source": os.path.abspath(self.source), "drop_columns": list(self.drop_columns)}


@dataclass(frozen=True, eq=False)
class SequenceData:
    """Sequences as a model stores them, for its report and its page."""

    title: str
    split: str  # in words
    train: Encoded | None  # None if they are not known
    test: Encoded  # the sequences that are evaluated and shown
    names: tuple[str, ...]  # of the latter
    times: tuple[Sequence[str], ...] | None = None  # when each of their steps was, as text
    is_held_out: bool = True  # whether they were not used for training


_TIMES = {"t", "time", "date", "datetime", "timestamp", "day", "week", "month", "year"}  # names of columns of numbers


def time_column(dataset: Dataset) -> str | None:
    """Return the column of times that rise from row to row, as those of a series do; None if there is none."""
    if dataset.columns is None:
        return None
    named = [name for name in dataset.columns if str(name).lower() in _TIMES]
    if is_frame(dataset.rows):
        series = series_of(open_frame(dataset.rows))
        dated = [name for name, one in series.items() if isinstance(one.dtype, nw.Datetime | nw.Date)]
        columns = {name: read_cells(series[name], name).values for name in (*dated, *named)}
    else:
        columns = {name: dataset.rows[:, dataset.columns.index(name)] for name in named}
    return next((name for name, values in columns.items() if len(values) > 2 and _rises(values)), None)


def _rises(values):
    return values.dtype != object and bool(np.all(values[1:] > values[:-1]))


class SeriesFile(NamedTuple):
    """The sequences in a file, and which of them are held out."""

    title: str
    found: Sequences
    times: np.ndarray | None  # (steps,), when each step was, as numbers or dates
    train: np.ndarray
    test: np.ndarray

    decided = {}  # nothing that `config.toml` keeps in addition to the settings
    columns = ()

    @property
    def summary(self) -> str:
        """What was read, in one line."""
        lengths, num = self.found.lengths, len(self.found.lengths)
        some = f"{lengths.min():,} to {lengths.max():,}" if lengths.min() < lengths.max() else f"{lengths[0]:,}"
        kept = f"{len(self.train):,} for training, {len(self.test):,} held out" if num > 1 else "none held out"
        return f"{self.title}: {num:,} sequence{'s' * (num != 1)} of {some} steps; {kept}."

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `SequenceVAE.fit`."""
        return self.found.some(self.train).arguments

    @property
    def names(self) -> tuple[str, ...]:
        """What the sequences are called."""
        names = self.found.names
        return tuple(map(as_text, range(len(self.found.lengths)) if names is None else names.tolist()))

    def stored_by(self, model: FittedModel) -> SequenceData:
        """Return the sequences as the model stores them; those of the report are the held-out ones, if there are any.

        Args:
            model: The model.
        """
        numbers = self.test if len(self.test) else self.train
        encoded, num = model.format.encode(self.found), len(self.found.lengths)
        times = None
        if self.times is not None:
            parts = np.split(np.array([as_text(time) for time in self.times.tolist()], object), self.found.ends)
            times = tuple(list(parts[number]) for number in numbers)
        split = f"test: {len(self.test)} of {num} sequences, chosen at random, not used for training"
        return SequenceData(
            self.title,
            split if len(self.test) else f"all {num} sequences are used for training" if num > 1 else "one sequence",
            encoded.some(self.train),
            encoded.some(numbers),
            tuple(self.names[number] for number in numbers),
            times,
            len(self.test) > 0,
        )


def prepare_series(settings: SeriesSettings) -> SeriesFile:
    """Read a file of sequences, and choose those to hold out."""
    found, times = read_series(settings)
    num = len(found.lengths)
    test = np.sort(np.random.default_rng(settings.seed).permutation(num)[: int(settings.test_fraction * num)])
    return SeriesFile(Path(settings.source).name, found, times, np.setdiff1d(np.arange(num), test), test)


def as_text(value: Any) -> str:
    """Return a time or a name as text: dates without an empty time of day, numbers without an empty fraction.

    Example:
        >>> [as_text(value) for value in (1950.0, 0.25, "shop 1", np.datetime64("2024-01-31T00:00:00").item())]
        ['1950', '0.25', 'shop 1', '2024-01-31']
    """
    return f"{value:.15g}" if isinstance(value, float) else str(value).removesuffix(" 00:00:00")


def read_series(settings: SeriesSettings) -> tuple[Sequences, np.ndarray | None]:
    """Return the sequences in a file, and when each of their steps was, numbers or dates, None without such a column.

    Raises:
        DataFileError: The file, or a column of it, cannot be used; the message says why.
    """
    source = settings.source
    if not Path(source).is_file() or ending_of(Path(source)) not in WITH_LABEL_COLUMNS:
        allowed = ", ".join(WITH_LABEL_COLUMNS)
        raise DataFileError(f"{source}: --time and --sequence need a {allowed} file with a header.")
    frame = read_frame(source)
    series = series_of(open_frame(frame))

    def values(option):
        name = getattr(settings, option)
        if name is None:
            return None
        if name not in series:
            raise DataFileError(f"--{option}: {source}: {no_column(name, list(series))}")
        cells = read_cells(series[name], name)
        if cells.missing.any():
            row = int(np.argmax(cells.missing))
            raise DataFileError(
                f"--{option} {name}: {source}: row {row} has no value (counted from 0). Give one for each row, or "
                "leave the row out."
            )
        is_date = option == "time" and cells.group == DATE
        return cells.values.astype(f"M8[{cells.storage.unit}]").astype("M8[s]") if is_date else cells.values

    times = values("time")
    if times is not None and times.dtype == object:
        try:
            times = np.array(times, "M8[s]")
        except ValueError:
            raise DataFileError(
                f"--time {settings.time}: {source}: neither numbers nor dates, such as {times[0]!r}. Write dates as "
                "2024-01-31 or 2024-01-31T18:30."
            ) from None
    rows = without_columns(frame, (settings.time, settings.sequence, *settings.drop_columns))
    if not series_of(open_frame(rows)):
        raise DataFileError(f"{source}: no column is left besides those of --time, --sequence and --drop-columns.")
    found = by_sequence(rows, values("sequence"), times, source)
    check_times(found, source)
    return found, times if times is None or found.order is None else times[found.order]


def times_after(series: SeriesFile, unit: float, steps: int) -> np.ndarray:
    """Return when the steps after the end of each sequence are, (n, steps): numbers or dates.

    Args:
        series: The sequences, with times.
        unit: Time between two steps, of dates in seconds; dates that are whole months apart are continued in months.
        steps: Number of steps.
    """
    assert series.times is not None
    parts = np.split(series.times, series.found.ends)
    last, after = np.array([part[-1] for part in parts]), np.arange(1, steps + 1)
    if last.dtype.kind != "M":
        return last[:, None] + unit * after
    months = series.times.astype("M8[M]")
    gaps = np.concatenate([np.diff(part.astype("M8[M]")).astype(int) for part in parts])
    within = series.times - months.astype("M8[s]")
    if (within == within[0]).all() and within[0] < np.timedelta64(28, "D") and len(gaps) and (gaps > 0).all():
        months = last.astype("M8[M]")[:, None] + int(np.median(gaps)) * after
        return months.astype("M8[s]") + within[0]
    return last[:, None] + (unit * after).round().astype("m8[s]")
