"""How sequences become padded arrays on the device, and values of the model become data: a part of a fitted model."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from aevb.data.encoded_sequences import Encoded
from aevb.data.frames import TableFormat
from aevb.data.frames.parts import take_rows
from aevb.data.frames.stored import LABELS
from aevb.data.given import encode_given, learn_given, naming
from aevb.data.sequences import Sequences, read_sequences
from aevb.models import Conversion, Covariates, Datapoint, Numbers
from aevb.models.column import Column
from aevb.training import Source

BINARY = ("bernoulli", "binary")


@final
@dataclass(frozen=True, eq=False)
class SequenceFormat:
    """The columns of sequences, their unit of time, and what they are conditioned on.

    Args:
        table: The columns of a step.
        time_unit: The typical time between two steps; None if steps are regular.
        controls: The columns of the inputs at each step; None if there are none.
        covariates: The columns of what a whole sequence is conditioned on; None if there are none.
        autoregressive: Whether the model of a step reads the values of the step before.
    """

    table: TableFormat
    time_unit: float | None = None
    controls: TableFormat | None = None
    covariates: TableFormat | None = None
    autoregressive: bool = False

    @classmethod
    def learn(cls, found: Sequences, likelihood: Any = "auto", controls: Any = None, covariates: Any = None):
        """Return the format of sequences.

        Args:
            found: The sequences.
            likelihood: Of the columns, see :meth:`aevb.data.frames.TableFormat.learn`.
            controls: Inputs at each step, in the form of the sequences; None for none.
            covariates: A label or number for each sequence, or a table of them; None for none.
        """
        rows = found.rows
        if isinstance(rows, np.ndarray) and isinstance(likelihood, str) and likelihood in BINARY:
            # A note that is never played in training is binary too: without these two rows it would be left out.
            rows = np.concatenate([rows, np.zeros((1, rows.shape[1])), np.ones((1, rows.shape[1]))])
        with naming("sequences"):
            table = TableFormat.learn(rows, likelihood, are_steps=True)
        unit = None
        if found.times is not None and len(found.times) > len(found.lengths):
            unit = float(np.median(np.concatenate([np.diff(t) for t in np.split(found.times, found.ends)])))
        return cls(table, unit, _learned(controls, found, "controls"), _learned(covariates, found, "covariates"))

    # ---- what a fitted model asks of a format ------------------------------------------------------------------------

    @property
    def columns(self) -> tuple:
        """The columns of a step that the model learns."""
        return self.table.columns

    @property
    def model_columns(self) -> tuple[Column, ...]:
        """What the model needs to know about each column."""
        return self.table.model_columns

    @property
    def matrix(self) -> Any:
        """The format of the stored numbers of a step."""
        return self.table.matrix

    @property
    def encodes_missing(self) -> bool:
        """Whether the encoder reads sequences with missing entries: always."""
        return True

    @property
    def num_inputs(self) -> int:
        """The number of features of controls and covariates."""
        return sum(reader.size for reader in (_reader(self.controls), _reader(self.covariates)) if reader is not None)

    def encode(self, found: Sequences, controls: Any = None, covariates: Any = None, more: int = 0) -> Encoded:
        """Return sequences as numbers.

        Args:
            found: The sequences.
            controls: Inputs at each step, in the form of the sequences.
            covariates: For each sequence.
            more: How many steps each sequence of the controls is longer.
        """
        with naming("sequences"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".* no observed entry")  # a missing step
            values = self.table.encode(found.rows)
        conditions = self._conditions(found, controls, covariates, more)
        return Encoded(found.lengths, np.split(values, found.ends), self._elapsed(found), *conditions)

    def _conditions(self, found, controls, covariates, more=0):
        """Return the stored numbers of controls and covariates; None for what the model does not have."""
        for format, given, name in ((self.controls, controls, "controls"), (self.covariates, covariates, "covariates")):
            if (format is None) != (given is None):
                said = "was fitted without" if format is None else "needs"
                raise ValueError(
                    f"{name}: the model {said} them. {'Leave them out' if format is None else 'Give them'}."
                )
        read = None
        if self.controls is not None:
            steps = read_sequences(controls, _lengths_for(controls, found, more), name="controls")
            if not np.array_equal(steps.lengths, found.lengths + more):
                raise ValueError(
                    f"controls: their sequences have {_some(steps.lengths)} steps; expected "
                    f"{_some(found.lengths + more)}{' with those of the forecast' if more else ''}."
                )
            read = np.split(encode_given(self.controls, steps.rows, name="controls"), steps.ends)
        n = len(found.lengths)
        return read, None if self.covariates is None else encode_given(self.covariates, covariates, n, "covariates")

    def _elapsed(self, found):
        if self.time_unit is None:
            if found.times is not None:
                raise ValueError("times: the model was fitted to regular steps, without times. Leave them out.")
            return [np.ones(length) for length in found.lengths]
        if found.times is None:
            raise ValueError("times: the model was fitted to steps with times. Give them.")
        unit, parts = self.time_unit, np.split(found.times, found.ends)
        return [np.concatenate([[1.0], np.diff(times) / unit]) for times in parts]

    def blank(self, lengths: np.ndarray, controls: Any = None, covariates: Any = None) -> Encoded:
        """Return regular sequences of these lengths in which nothing is observed."""
        values = [np.full((length, len(self.model_columns)), np.nan) for length in lengths]
        empty = Sequences(np.zeros((int(lengths.sum()), 0)), lengths)
        elapsed = [np.ones(length) for length in lengths]
        return Encoded(lengths, values, elapsed, *self._conditions(empty, controls, covariates))

    def source(self, encoded: Encoded, length: int) -> Source:
        """Return sequences on the device, padded to one length T."""
        n, D = len(encoded.lengths), len(self.model_columns)
        values, elapsed = np.full((n, length, D), np.nan, np.float32), np.ones((n, length), np.float32)
        for place, (rows, gaps) in enumerate(zip(encoded.values, encoded.elapsed, strict=True)):
            values[place, : len(rows)], elapsed[place, : len(gaps)] = rows, gaps
        given: dict[str, np.ndarray] = {"length": encoded.lengths.astype(np.float32), "elapsed": elapsed}
        if self.autoregressive:
            first = np.full((n, D), np.nan, np.float32) if encoded.before is None else np.array(encoded.before)
            given["previous"] = np.concatenate([first[:, None].astype(np.float32), values[:, :-1]], axis=1)
        if encoded.controls is not None:
            controls = np.zeros((n, length, encoded.controls[0].shape[1]), np.float32)
            for place, rows in enumerate(encoded.controls):
                controls[place, : len(rows)] = rows
            given["controls"] = controls
        if encoded.covariates is not None:
            given["covariates"] = encoded.covariates.astype(np.float32)
        conversion = self.conversion
        if encoded.following is not None:
            given["following"] = encoded.following.astype(np.int32)
            conversion = Conversion(Numbers(has_missing=True), conversion.given | {"following": Numbers()})
        return Source(Datapoint(values, given=given), conversion)

    @property
    def conversion(self) -> Conversion:
        """How a step of training reads padded sequences."""
        readers: dict[str, Any] = {"length": Numbers(), "elapsed": Numbers()}
        if self.autoregressive:
            readers["previous"] = Numbers()
        readers |= {
            name: reader
            for name, reader in (("controls", _reader(self.controls)), ("covariates", _reader(self.covariates)))
            if reader is not None
        }
        return Conversion(Numbers(has_missing=True), readers)

    # ---- values of the model as data ---------------------------------------------------------------------------------

    def in_units(self, stored: np.ndarray, exact: bool = True) -> np.ndarray:
        """Return stored numbers (..., D) in the user's units, (..., columns): NaN for columns that are left out.

        Labels are numbers if they were numbers, and otherwise their codes. If the numbers of binary columns are not
        exact, they are averages of the codes 0 and 1.
        """
        names = [str(name) for name in self.table.names]
        values = np.full((*stored.shape[:-1], len(names)), np.nan)
        for place, column in enumerate(self.columns):
            values[..., names.index(column.name)] = _numbers_of(
                column, np.asarray(stored[..., place], np.float64), exact
            )
        return values

    def decoded(self, found: Sequences, parts: Sequence[np.ndarray]) -> Any:
        """Return stored numbers (T_i, D) like the sequences that were given, whose observed entries are kept."""
        if isinstance(found.rows, np.ndarray):
            return found.restored(
                [
                    np.where(np.isnan(rows), self.in_units(part), rows)
                    for rows, part in zip(np.split(found.rows, found.ends), parts, strict=True)
                ]
            )
        frame = self.table.decode(np.concatenate(list(parts)), found.rows, keep_observed=True)
        return frame if found.order is None else take_rows(frame, np.argsort(found.order))

    def describe(self) -> dict[str, Any]:
        """Return the format as JSON can hold it."""
        parts = {"table": self.table, "controls": self.controls, "covariates": self.covariates}
        described = {name: None if part is None else part.describe() for name, part in parts.items()}
        facts = {"kind": "sequences", "time_unit": self.time_unit, "autoregressive": self.autoregressive}
        return facts | described

    @classmethod
    def from_description(cls, facts: Mapping[str, Any]) -> "SequenceFormat":
        """Return the format that was described."""
        parts = [
            None if facts[name] is None else TableFormat.from_description(facts[name])
            for name in ("table", "controls", "covariates")
        ]
        return cls(parts[0], facts["time_unit"], *parts[1:], facts.get("autoregressive", False))  # type: ignore


def _learned(given, found: Sequences, name):
    if given is None:
        return None
    if name == "controls":
        return learn_given(read_sequences(given, _lengths_for(given, found), name=name).rows, name)[0]
    format, rows = learn_given(given, name)
    if len(rows) != len(found.lengths):
        raise ValueError(f"{name} has {len(rows):,} rows, but there are {len(found.lengths):,} sequences.")
    return format


def _lengths_for(given, found: Sequences, more: int = 0):
    """Return the lengths by which the rows of controls are split, if they are rows."""
    is_rows = not isinstance(given, list | tuple) and np.ndim(given) != 3
    return found.lengths + more if is_rows and getattr(getattr(given, "index", None), "nlevels", 1) == 1 else None


def _reader(format: TableFormat | None) -> Covariates | None:
    return None if format is None else Covariates(format.model_columns, format.encodes_missing)


def _numbers_of(column, stored, exact):
    if column.column.family not in LABELS:
        return column.column.in_units(stored)
    if not exact:
        return stored
    codes = np.where(np.isnan(stored), 0, stored).astype(int)
    labels: Sequence = column.levels
    if all(isinstance(label, int | float | bool) for label in labels):
        return np.where(np.isnan(stored), np.nan, np.asarray(labels, np.float64)[codes])
    return stored


def _some(numbers):
    return f"{', '.join(map(str, numbers[:5]))}{', ...' * (len(numbers) > 5)}"
