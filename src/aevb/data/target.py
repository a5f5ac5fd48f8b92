"""A file with a column to predict from the others: the data of a run of `VAEClassifier` or `VAERegressor`."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aevb.arguments import check_parameter
from aevb.data.class_labels import UNLABELED, read_labels
from aevb.data.data_settings import settings_from
from aevb.data.frames import frame_of, read_frame
from aevb.data.frames.cells import read_cells
from aevb.data.frames.column_format import ColumnFormat
from aevb.data.frames.containers import open_frame, series_of
from aevb.data.frames.kinds import decide, facts_of
from aevb.data.frames.parts import take_rows, without_columns
from aevb.data.given import as_frame, naming
from aevb.data.label_data import CLASSIFIER, LabelData, kind_of_labels
from aevb.data.own import WITH_LABEL_COLUMNS
from aevb.data.tables import ending_of
from aevb.errors import DataFileError, no_column, shown
from aevb.fitted import FittedModel
from aevb.models import Datapoint

LABELS = ("binary", "categorical")  # kinds of a column that is predicted by a classifier
TARGET = "target"  # the estimator of such runs, which depends on the column


@dataclass(frozen=True)
class TargetSettings:
    """Which file a run uses, and what it predicts: the table [data] of a run's `config.toml`.

    Args:
        source: A .csv, .tsv or .parquet file.
        target: The column to predict.
        drop_columns: Names of columns to leave out.
        test_fraction: Share of the rows with a known target that is held out, rounded down.
        seed: Seed of the split.
    """

    source: str
    target: str
    drop_columns: Sequence[str] = ()
    test_fraction: float = 0.1
    seed: int = 0

    estimator = TARGET

    def __post_init__(self):
        for name in ("source", "target"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name}={shown(getattr(self, name))} is not allowed. Give text.")
        check_parameter("test_fraction", self.test_fraction, kind=float, low=0, high=0.9)
        check_parameter("seed", self.seed, kind=int, low=0, high=2**32 - 1)

    @classmethod
    def of(cls, table: dict[str, Any]) -> "TargetSettings":
        """Return the settings in a table."""
        return settings_from(cls, table)

    def written(self) -> dict[str, Any]:
        """Return the table, with an absolute path."""
        return asdict(self) | {"source": os.path.abspath(self.source), "drop_columns": list(self.drop_columns)}


class TargetFile(NamedTuple):
    """The rows of a file, their targets, and which of them are held out."""

    settings: TargetSettings
    rows: Any  # a frame of the other columns
    values: np.ndarray  # (n,), labels as objects with -1 for missing ones, or numbers with NaN
    reason: str  # why these are labels or numbers
    train: np.ndarray
    test: np.ndarray

    @property
    def are_labels(self) -> bool:
        """Whether the target is a label."""
        return self.values.dtype == object

    @property
    def arguments(self) -> tuple[Any, np.ndarray]:
        """The training rows and their targets, for `fit`."""
        return take_rows(self.rows, self.train), self.values[self.train]

    def stored_by(self, model: FittedModel) -> LabelData:
        """Return the rows as the model stores them."""
        source, target = Path(self.settings.source).name, self.settings.target
        num = len(self.test)
        split = f"test: {num:,} of {len(self.values):,} rows, chosen at random, not used for training"
        test = self._stored(model, self.test) if num else None
        return LabelData(f"{target} in {source}", split, self._stored(model, self.train), test)

    def _stored(self, model, numbers):
        rows, values = take_rows(self.rows, numbers), self.values[numbers]
        if kind_of_labels(model) == CLASSIFIER:
            of = model.of_data
            stored = of.format.encode(frame_of(rows)) if of.is_table else _numbers(rows, of.matrix.columns)
            places = read_labels(values, len(values), model.given.columns[0].levels)[1]
            return Datapoint(stored, given=places[:, None])
        with naming("y"):  # some may be missing
            targets = model.format.encode(as_frame(values))
        return Datapoint(targets, given=model.given.encode(frame_of(rows)))


def _numbers(rows, columns):
    """Return the columns of a frame of numbers as a matrix."""
    series = {str(name): values for name, values in series_of(open_frame(rows)).items()}
    return np.stack([np.asarray(read_cells(series[name], name).values, float) for name in columns], axis=1)


def prepare_target(settings: TargetSettings) -> TargetFile:
    """Read a file with a target, and choose rows to hold out.

    Raises:
        DataFileError: The file or the column cannot be used; the message says why.
    """
    frame = read_table(settings.source)
    values, reason = _target(frame, settings.target, settings.source)
    rows = without_columns(frame, (settings.target, *settings.drop_columns))
    is_known = values != UNLABELED if values.dtype == object else ~np.isnan(values)
    order = np.random.default_rng(settings.seed).permutation(len(values))
    test = order[np.asarray(is_known, bool)[order]][: int(settings.test_fraction * np.count_nonzero(is_known))]
    return TargetFile(settings, rows, values, reason, np.setdiff1d(np.arange(len(values)), test), np.sort(test))


def read_table(source: str, option: str = "--target") -> Any:
    """Return a file of a table as a frame; refuse other files, in a message about this option."""
    if not Path(source).is_file() or ending_of(Path(source)) not in WITH_LABEL_COLUMNS:
        raise DataFileError(f"{source}: {option} needs a {', '.join(WITH_LABEL_COLUMNS)} file, with a header.")
    return read_frame(source)


def _target(frame, target, source):
    """Return the target of each row, labels as objects with -1 for missing ones, or numbers, and its kind in words."""
    series = series_of(open_frame(frame))
    if target not in series:
        raise DataFileError(f"--target: {source}: {no_column(target, list(series))}")
    cells = read_cells(series[target], target)
    facts = facts_of(cells)
    decision = decide(facts)
    if decision.kind == "drop":
        raise DataFileError(f"--target {target}: this column is {decision.reason}.")
    if decision.kind not in LABELS and cells.values.dtype == np.float64:
        return cells.values, "numbers" if decision.reason == "numbers" else f"numbers ({decision.reason})"
    labels, missing = ColumnFormat.learn(facts, decision._replace(kind="categorical")), cells.missing
    known = np.array(labels.levels, object)
    codes = labels.encode(cells)
    values = np.full(len(codes), UNLABELED, object)
    values[~missing] = known[codes[~missing].astype(int)]
    return values, f"labels ({decision.reason})"
