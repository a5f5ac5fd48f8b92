"""How a table becomes a matrix of stored numbers, and the draws of a model become a table again."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from aevb.data.frames import containers
from aevb.data.frames.cells import read_cells
from aevb.data.frames.column_format import ColumnFormat
from aevb.data.frames.kinds import decide, facts_of
from aevb.data.frames.likelihoods import AS_ASKED, AUTO, DROP, requested_kinds
from aevb.data.frames.matrix_frame import MatrixFrame
from aevb.data.frames.stored import LABELS
from aevb.models import Conversion, MatrixFormat, Numbers
from aevb.models.column import Column

MODELED = "modeled"  # the value of `missing` with which the missing entries are a part of the model


class Row(NamedTuple):
    """What a summary says about one column."""

    column: str
    kind: str
    reason: str
    missing: float  # share of the entries


class LeftOut(NamedTuple):
    """A column that the model does not learn."""

    name: str
    reason: str
    missing: float
    place: int  # among all columns


class NothingToLearnError(ValueError):
    """No column of a table can be learned.

    Args:
        left_out: All columns, each with the reason.
    """

    def __init__(self, left_out: Sequence[LeftOut]):
        self.reasons = "; ".join(f"{column.name!r} is {column.reason}" for column in left_out[:5])
        super().__init__(
            f"X has no column to learn from: {self.reasons}{'; ...' * (len(left_out) > 5)}. Add columns, or name the "
            "kind of one: likelihood={'name': 'gaussian'}."
        )


@dataclass(frozen=True)
class TableFormat:
    """The columns of a table, as they are in a frame and as a model stores them.

    Args:
        columns: Those that the model learns, in the order of the matrix.
        left_out: The others, and why.
        container: Which library the frame belongs to: "pandas", "polars" or "pyarrow".
        names: All names of columns in their order, as the frame has them: text or whole numbers.
        modeled: The columns for which the model learns whether an entry is missing. The matrix has one more column for
            each of them, at its end: 1 where the entry is missing, 0 where it is observed.

    Example:
        >>> import polars as pl
        >>> people = pl.DataFrame({"age": [31, None, 54], "sex": ["F", "M", None]})
        >>> table = TableFormat.learn(people)
        >>> [(row.column, row.kind) for row in table.summary()]
        [('age', 'binary'), ('sex', 'binary')]
        >>> table = TableFormat.learn(people, {"age": "gaussian"})
        >>> table.encode(people).round(1).tolist()
        [[-1.0, 0.0], [nan, 1.0], [1.0, nan]]
        >>> table.decode(np.array([[0.0, 1.0]])).rows()
        [(42, 'M')]
        >>> TableFormat.from_description(table.describe()) == table
        True
    """

    columns: tuple[ColumnFormat, ...]
    left_out: tuple[LeftOut, ...]
    container: str
    names: tuple[Any, ...]
    modeled: tuple[str, ...] = ()

    @classmethod
    def learn(
        cls, frame: Any, likelihood: Any = AUTO, missing: str = "ignored", *, are_steps: bool = False
    ) -> "TableFormat":
        """Return the format of a table.

        Args:
            frame: A data frame of pandas or polars, or an Arrow table, of at least two rows.
            likelihood: "auto", one kind for all columns, or kinds by the names of columns; see
                :data:`~aevb.data.frames.KINDS`. Columns without a kind get the one that suits their values.
            missing: "ignored", or "modeled" to learn which entries are missing too.
            are_steps: Whether the rows are steps of sequences, see :func:`aevb.data.frames.kinds.decide`.

        Raises:
            ValueError: The table cannot be learned; the message names the column, what is wrong and what to do.
        """
        opened = containers.open_frame(frame)
        _check_names(opened.columns)
        series = containers.series_of(opened)
        requested = requested_kinds(likelihood, list(series))
        if len(opened) < 2:
            raise ValueError(f"X has n_samples = {len(opened)}; training needs at least 2 rows.")
        columns, left_out = [], []
        for place, (name, column) in enumerate(series.items()):
            if requested[name] == DROP:
                share = float(read_cells(column, name).missing.mean())
                left_out.append(LeftOut(name, AS_ASKED, share, place))
                continue
            facts = facts_of(read_cells(column, name))
            is_for_all = not isinstance(likelihood, Mapping)
            decision = decide(facts, requested[name], is_for_all=is_for_all, are_steps=are_steps)
            if decision.kind == DROP:
                left_out.append(LeftOut(name, decision.reason, float(facts.cells.missing.mean()), place))
            else:
                columns.append(ColumnFormat.learn(facts, decision))
        if not columns:
            raise NothingToLearnError(left_out)
        modeled = tuple(column.name for column in columns if column.missing > 0 and missing == MODELED)
        return cls(tuple(columns), tuple(left_out), containers.container_of(opened), tuple(opened.columns), modeled)

    # ---- what a fitted model asks of a format ------------------------------------------------------------------------

    @property
    def encodes_missing(self) -> bool:
        """Whether the encoder reads rows with missing entries: if there were any in training."""
        return any(column.missing > 0 for column in self.columns)

    @property
    def matrix(self) -> MatrixFormat:
        """The format of the stored numbers."""
        names = tuple(column.name for column in self.model_columns)
        return MatrixFormat(len(names), names)

    def store(self, X: np.ndarray) -> tuple[np.ndarray, Conversion]:
        """Return stored numbers (n, D) as they are on the device, and how a step reads them."""
        return X.astype(np.float32), Conversion(Numbers(has_missing=self.encodes_missing))

    def restore(self, values: Any) -> np.ndarray:
        """Return stored numbers unchanged: :meth:`decode` makes a table of them."""
        return np.asarray(values)

    # ---- tables and stored numbers -----------------------------------------------------------------------------------

    def encode(self, frame: Any) -> np.ndarray:
        """Return the stored numbers (n, D) of a table, float64, NaN where entries are missing.

        The columns may be in any order, and those that were left out may be absent. Labels that were not there in
        training count as missing, with a warning; so do rows without any observed entry.

        Raises:
            ValueError: Columns are missing or unknown, of another type, or hold numbers that are not allowed.
        """
        series = self._series(frame)
        cells = {column.name: read_cells(series[column.name], column.name) for column in self.columns}
        stored = [column.encode(cells[column.name]) for column in self.columns]
        if not len(stored[0]):
            raise ValueError("X: found a table with 0 sample(s), but at least 1 is required. Give at least one row.")
        matrix = np.stack([*stored, *(cells[name].missing.astype(float) for name in self.modeled)], axis=1)
        num_empty = np.count_nonzero(np.isnan(matrix[:, : len(stored)]).all(axis=1))
        if num_empty:
            have = "has" if num_empty == 1 else "have"
            warnings.warn(
                f"X: {num_empty:,} of {len(matrix):,} rows {have} no observed entry: nothing is known about them.",
                UserWarning,
                stacklevel=2,
            )
        return matrix

    def decode(
        self, matrix: np.ndarray, like: Any = None, keep_observed: bool = False, given: Collection[str] = ()
    ) -> Any:
        """Return stored numbers (n, D) as a table: columns, data types, labels and order of the one learned from.

        Whole numbers, counts and dates are rounded and kept within the range that was observed; so are the other
        numbers of new rows, which get as many decimals as those in training if these are few. Whole numbers are of a
        nullable type where entries are missing.

        Args:
            matrix: (n, D), NaN where entries are missing.
            like: A table whose rows these are, or None. The result is of the same library, has its index, and the
                columns that were left out are taken from it, if it has them. Of a matrix, they are NaN without it.
            keep_observed: Whether entries that are observed in `like` are returned as they are, for imputation.
            given: Names of columns whose values the user gave, which may lie outside of the range observed.
        """
        matrix, num_columns = np.asarray(matrix, np.float64), self.matrix.num_columns
        if matrix.ndim != 2 or matrix.shape[1] != num_columns:
            raise ValueError(f"matrix has shape {matrix.shape}; expected (n, {num_columns}).")
        series = {} if like is None else self._series(like)
        opened = None if like is None else containers.open_frame(like)
        if opened is not None and len(opened) != len(matrix):
            raise ValueError(f"like has {len(opened):,} rows, but the matrix has {len(matrix):,}. Give the same rows.")
        entries: dict[str, Any] = {}
        for column, stored in zip(self.columns, matrix.T, strict=False):  # those of `modeled` are not part of a table
            kept = read_cells(series[column.name], column.name) if keep_observed and series else None
            options = {"is_new": like is None, "is_observed": column.name in given}
            entries[column.name] = column.storage_of(kept), column.decode(stored, kept, **options)
        entries |= {
            column.name: containers.native(series[column.name]) for column in self.left_out if column.name in series
        }
        container = self.container if opened is None else containers.container_of(opened)
        if container == MatrixFrame.implementation:  # whose columns are known by their places
            hole = np.full(len(matrix), np.nan)
            entries = {column.name: (None, (hole, None)) for column in self.left_out} | entries
        ordered = {name: entries[str(name)] for name in self.names if str(name) in entries}
        return containers.build_frame(container, ordered, getattr(like, "index", None))

    def with_holes(self, matrix: np.ndarray) -> np.ndarray:
        """Return draws of a model (n, D) with NaN where it says that an entry is missing."""
        matrix, names = np.array(matrix, np.float64), [column.name for column in self.columns]
        for place, name in enumerate(self.modeled, len(names)):
            matrix[matrix[:, place] == 1, names.index(name)] = np.nan
        return matrix

    def std_in_units(self, std: np.ndarray) -> np.ndarray:
        """Return standard deviations of stored numbers, (n, D), in the user's units, a column for each one learned."""
        stds = zip(self.columns, std.T, strict=False)
        return np.stack([column.std_in_units(of_column) for column, of_column in stds], axis=1)

    def _series(self, frame):
        """Return the columns of a frame by name; refuse a frame that lacks some, or has others."""
        series = containers.series_of(containers.open_frame(frame))
        known, optional = [column.name for column in self.columns], {column.name for column in self.left_out}
        lacking = [name for name in known if name not in series]
        strange = [name for name in series if name not in known and name not in optional]
        if lacking or strange:
            wrong = {"lacks": lacking, "has in addition": strange}
            said = "; it ".join(f"{what} {', '.join(map(repr, which[:10]))}" for what, which in wrong.items() if which)
            raise ValueError(
                f"X {said}. The model learned from the columns {', '.join(map(repr, known[:30]))}: give these, in any "
                "order; a column whose values are not known may hold missing entries only."
            )
        return series

    @property
    def model_columns(self) -> tuple[Column, ...]:
        """What the model needs to know about each column of the matrix."""
        columns = {column.name: column for column in self.columns}
        return (*(column.column for column in self.columns), *(columns[name].is_missing for name in self.modeled))

    def __str__(self) -> str:
        rows = [row._replace(missing=f"{row.missing:.0%}" if row.missing else "") for row in self.summary()]  # type: ignore
        widths = [max(len(str(row[place])) for row in rows) for place in (0, 1)]
        lines = [
            f"  {row.column:{widths[0]}}  {row.kind:{widths[1]}}  {row.missing:>4}  {row.reason}".rstrip()
            for row in rows
        ]
        return "\n".join(["Columns: name, kind, share of missing entries, reason", *lines])

    def summary(self) -> list[Row]:
        """Return a row for each column of the frame, in its order: name, kind, reason and share of missing entries."""
        rows = {column.name: Row(column.name, column.kind, column.reason, column.missing) for column in self.columns}
        rows |= {column.name: Row(column.name, "left out", column.reason, column.missing) for column in self.left_out}
        return [rows[str(name)] for name in self.names]

    def describe(self) -> dict[str, Any]:
        """Return all of it as what JSON can hold."""
        return {
            "kind": "table",
            "columns": [column.describe() for column in self.columns],
            "left_out": [column._asdict() for column in self.left_out],
            "container": self.container,
            "names": list(self.names),
            "modeled": list(self.modeled),
        }

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "TableFormat":
        """Return the format that was described."""
        return cls(
            tuple(ColumnFormat.from_description(column) for column in description["columns"]),
            tuple(LeftOut(**column) for column in description["left_out"]),
            description["container"],
            tuple(description["names"]),
            tuple(description.get("modeled", ())),
        )


def _check_names(names):
    for name in names:
        if not isinstance(name, str | int):
            raise ValueError(f"X has a column of the name {name!r}; names must be text or whole numbers. Rename it.")


def unknown_labels(table: TableFormat, frame: Any) -> dict[str, list]:
    """Return the labels of a table that were not there in training, by column; columns without any are left out."""
    series = containers.series_of(containers.open_frame(frame))
    found: dict[str, list] = {}
    for column in table.columns:
        if column.column.family in LABELS and column.name in series:
            present = dict.fromkeys(read_cells(series[column.name], column.name).observed.tolist())
            found[column.name] = [label for label in present if label not in column.levels]
    return {name: labels for name, labels in found.items() if labels}
