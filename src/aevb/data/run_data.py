"""The data of a run, split into training and held-out rows."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aevb.arguments import check_parameter
from aevb.data.binarization import BINARIZATIONS, binarize, level_scale
from aevb.data.checks import check_rows
from aevb.data.datasets import DATASETS, Dataset
from aevb.data.frames import COLUMN_KINDS, frame_of
from aevb.data.frames.parts import take_rows
from aevb.data.own import described, open_dataset, own_labels, own_tables
from aevb.data.own_frame import open_own_frame
from aevb.data.scan import pick
from aevb.data.table import NamedColumns, SomeRows
from aevb.data.tables import ending_of, is_image_folder
from aevb.errors import DataFileError, shown
from aevb.fitted import FittedModel

MAX_ROWS = 10_000  # held-out rows, and rows shown, of data larger than memory


POLARITIES = ("ink", "light")
_TEXT = str | None
_SHAPE = list | tuple | None
_NAMES = list | tuple
_WORDS = {str: "text", _TEXT: "text", _SHAPE: "two whole numbers", _NAMES: "a list of names", bool: "true or false"}
_KINDS: dict[str, Any] = {
    "source": str, "label_column": _TEXT, "drop_columns": _NAMES, "image_shape": _SHAPE, "drop_missing": bool
}  # fmt: skip


@dataclass(frozen=True)
class DataSettings:
    """Which data a run uses and how: the table [data] of a run's `config.toml`.

    Args:
        source: Name of a data set, or a path.
        binarization: How grey levels become binary; None: unchanged.
        test_fraction: Fraction of the rows that is held out; ignored for data with a published split.
        label_column: Column of labels in a `.csv` or `.parquet` file.
        drop_columns: Names of columns of such a file to leave out.
        image_shape: (height, width).
        polarity: How images are drawn: ``"light"`` if large values are light, ``"ink"`` if they are dark; None: ink for
            the published data sets of handwriting and clothes, else light.
        drop_missing: Whether rows with missing values are left out instead of refused.
        seed: Seed of the split and of the binary draws.
    """

    source: str
    binarization: str | None = None
    test_fraction: float = 0.1
    label_column: str | None = None
    drop_columns: Sequence[str] = ()
    image_shape: tuple[int, int] | None = None
    polarity: str | None = None
    drop_missing: bool = False
    seed: int = 0

    def __post_init__(self):
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if not (isinstance(value, kind) and (kind is bool or not isinstance(value, bool))):
                raise ValueError(f"{name}={shown(value)} is not allowed. Give {_WORDS[kind]}.")
        if not all(isinstance(name, str) for name in self.drop_columns):
            raise ValueError(f"drop_columns={shown(self.drop_columns)} is not allowed. Give a list of names.")
        if not self.source:
            raise ValueError("source='' is not allowed. Give the name of a data set, or a path.")
        if self.binarization is not None:
            check_parameter("binarization", self.binarization, choices=BINARIZATIONS)
        if self.polarity is not None:
            check_parameter("polarity", self.polarity, choices=POLARITIES)
        check_parameter("test_fraction", self.test_fraction, kind=float, above=0, high=0.9)
        check_parameter("seed", self.seed, kind=int, low=0, high=2**32 - 1)
        for side in self.image_shape or ():
            check_parameter("image_shape", side, kind=int, low=1)
        if self.image_shape is not None and len(self.image_shape) != 2:
            raise ValueError(f"image_shape={shown(self.image_shape)} is not allowed. Give height and width.")

    @classmethod
    def of(cls, table: dict[str, Any]) -> "DataSettings":
        """Return the settings in a table.

        Raises:
            ValueError: An entry is unknown, missing or invalid; the message names it.
        """
        known = [field.name for field in fields(cls)]
        for name in table:
            if name not in known:
                raise ValueError(f"[data] {name} is unknown. Allowed entries: {', '.join(known)}.")
        if "source" not in table:
            raise ValueError("[data] has no source. Give the name of a data set, or a path.")
        return cls(**table)

    def written(self) -> dict[str, Any]:
        """Return the table. Its path is absolute, so that the run can be used from any folder.

        It is not relative to the run folder: runs are moved and copied more often than the data they come from.
        """
        is_path = self.source not in DATASETS and Path(self.source).exists()
        return asdict(self) | ({"source": os.path.abspath(self.source)} if is_path else {})


class RunData(NamedTuple):
    """The data of a run."""

    dataset: Dataset  # as loaded; some of its rows if it is larger than memory
    learn: Any  # the data for `fit`
    valid: Any  # the validation_data for `fit`, or None
    train: Any  # (N, D): the training rows, as a model takes them; some of them if there are many
    test: Any  # (n, D): the held-out rows
    train_labels: np.ndarray | None
    test_labels: np.ndarray | None
    split: str  # in words
    binarization: str  # in one word
    num_train: int  # N
    test_rows: np.ndarray | None = None  # (n,), which rows of the data these are; None if it is not known

    def stored_by(self, model: FittedModel) -> "RunData":
        """Return the data with the rows of a table as the numbers that its model stores, NaN where they are missing."""
        if not model.is_table:
            return self
        train, test = (model.format.encode(frame_of(rows)) for rows in (self.train, self.test))
        return self._replace(train=train, test=test)


def prepare(settings: DataSettings, report=lambda *_: None, likelihood: Any = "auto") -> RunData:
    """Load the data and split them.

    The rows of a table, whose columns have different kinds or missing entries, are data frames, until a model is
    learned: see :meth:`RunData.stored_by`.

    Args:
        settings: Which data, and how.
        report: Called during a download, see :func:`aevb.data.load_dataset`.
        likelihood: Of the model: a name, or the kinds of columns.

    Raises:
        ValueError: The data or the settings cannot be used; the message says why.
    """
    height_and_width = None
    if settings.image_shape is not None:
        height, width = settings.image_shape
        height_and_width = (height, width)
    columns = {"label_column": settings.label_column, "drop_columns": settings.drop_columns}
    if (tables := large_tables(settings.source, **columns)) is not None:
        return _prepare_large(settings, tables, height_and_width)
    frame = open_own_frame(settings.source, likelihood, drop_missing=settings.drop_missing, **columns)
    if frame is not None:
        return _prepare_frame(settings, frame)
    dataset = open_dataset(
        settings.source,
        **columns,
        image_shape=height_and_width,
        report=report,
    )
    _check_kinds(dataset, likelihood)
    dataset = _drawn(dataset, settings)
    if settings.drop_missing:
        dataset = dataset.without_missing()
    try:
        # Checked here, where row numbers are those in the file.
        likelihood = None if settings.binarization in (None, "grey") else "bernoulli"
        scale = level_scale(dataset.rows)
        check_rows(dataset.rows, likelihood, scale=scale, name=settings.source, columns=dataset.columns)
    except ValueError as error:
        has_holes = np.isnan(dataset.rows).any() and not np.isinf(dataset.rows).any()
        raise ValueError(f"{error} Or leave them out: --drop-missing." if has_holes else str(error)) from None
    parts, split = _parts(dataset, settings)
    how = settings.binarization or "grey"
    # Each part has its own seed, so that its draws do not depend on which other parts are loaded.
    seeds = {name: [settings.seed, number] for number, name in enumerate(("train", "valid", "test"))}
    fixed = {name: _fixed(dataset.rows[rows], how, seeds[name]) for name, rows in parts.items()}
    learn = binarize(dataset.rows[parts["train"]], how) if how == "dynamic" else fixed["train"]
    if dataset.columns is not None:
        learn = NamedColumns(learn, dataset.columns)
    labels = {name: None if dataset.labels is None else dataset.labels[rows] for name, rows in parts.items()}
    binarization = dataset.binarization if how == "grey" else how
    return RunData(
        dataset, learn, fixed.get("valid"), fixed["train"], fixed["test"], labels["train"], labels["test"], split,
        binarization, len(parts["train"]),
    )  # fmt: skip


def _prepare_frame(settings, dataset):
    """Split a table; what its columns are is decided by `fit`, from the training rows."""
    for name, what in {"binarization": "grey levels", "image_shape": "images", "polarity": "images"}.items():
        value = getattr(settings, name)
        if value not in (None, "grey"):
            raise ValueError(f"{name}={shown(value)} is for {what}, and {settings.source} is a table of mixed columns.")
    parts, split = _parts(dataset, settings)
    rows = {name: take_rows(dataset.rows, numbers) for name, numbers in parts.items()}
    labels = {name: None if dataset.labels is None else dataset.labels[numbers] for name, numbers in parts.items()}
    return RunData(
        dataset, rows["train"], None, rows["train"], rows["test"], labels["train"], labels["test"], split, "none",
        len(rows["train"]), parts["test"],
    )  # fmt: skip


def _check_kinds(dataset, likelihood):
    """Refuse kinds of columns for images, and kinds by column for data without a table of columns."""
    if isinstance(likelihood, Mapping):
        raise ValueError(
            f"likelihood={shown(dict(likelihood))}: kinds by column are for .csv, .tsv and .parquet files, and "
            f"{dataset.name} is not one. Give one name for all columns."
        )
    if likelihood in COLUMN_KINDS and dataset.image_shape is not None:
        raise ValueError(f"likelihood={likelihood!r} is for the columns of tables, and {dataset.name} has images.")


def _drawn(dataset, settings):
    """Return a data set that is drawn with the polarity in the settings."""
    return dataset if settings.polarity is None else replace(dataset, light_on_dark=settings.polarity == "light")


def _prepare_large(settings, tables, image_shape):
    """Hold out some rows, and keep some others in memory for pictures; `fit` reads the files in pieces."""
    if settings.binarization not in (None, "grey"):
        raise ValueError(
            f"binarization={settings.binarization!r}: {settings.source} is larger than memory and is read in pieces, "
            "unchanged. Binarize it beforehand."
        )
    num_rows = sum(table.num_rows for table in tables)
    num_test = _num_test(settings, num_rows)
    rng = np.random.default_rng(settings.seed)
    chosen = rng.choice(num_rows, min(min(num_test, MAX_ROWS) + MAX_ROWS, num_rows), replace=False)
    test, shown = np.sort(chosen[: min(num_test, MAX_ROWS)]), np.sort(chosen[min(num_test, MAX_ROWS) :])
    chosen = np.sort(chosen)
    rows = pick(tables, chosen)
    check_rows(rows, None, name=settings.source, row_numbers=chosen, columns=tables[0].columns)
    is_test = np.isin(chosen, test)
    every = own_labels(Path(settings.source), settings.label_column, num_rows)
    labels = (None, None) if every is None else (every[shown], every[test])
    dataset = Dataset(settings.source, rows, None, tables[0].image_shape, "", columns=tables[0].columns)
    dataset = _drawn(described(dataset, settings.source, image_shape, num_rows), settings)
    split = f"test: {len(test):,} of {num_rows:,} rows, chosen at random, not used for training"
    learn = SomeRows(tables, test)
    return RunData(
        dataset, learn, None, rows[~is_test], rows[is_test], *labels, split, dataset.binarization, num_rows - len(test)
    )


def _parts(dataset, settings):
    if dataset.parts is not None:
        sizes = ", ".join(f"{name} {len(rows):,}" for name, rows in dataset.parts.items())
        return dataset.parts, f"as published or in the literature: {sizes}"
    num_rows = len(dataset.rows)
    num_test = _num_test(settings, num_rows)
    train, test = dataset.split(num_test, settings.seed)
    how = "stratified by label" if dataset.labels is not None else "chosen at random"
    return {"train": train, "test": test}, f"test: {num_test} of {num_rows} rows, {how}, not used for training"


def _num_test(settings, num_rows):
    num_test = int(settings.test_fraction * num_rows)
    if num_test < 1 or num_rows - num_test < 2:
        raise ValueError(f"{settings.source} has {num_rows} rows: too few to train on some and hold out others.")
    return num_test


def large_tables(source: str, label_column: str | None = None, drop_columns: Sequence[str] = ()):
    """Return the tables of data that do not fit into memory; None for other data, and for those with words."""
    from aevb.data.training_data import is_large

    path = Path(source)
    may_be_large = ending_of(path) in (".npy", ".npz", ".parquet") or path.is_dir()
    if source in DATASETS or not path.exists() or not may_be_large or is_image_folder(path):
        return None
    try:
        tables = own_tables(path, label_column, drop_columns)
    except DataFileError:
        return None  # reading it as a frame works, or reading it at once says what is wrong
    return tables if is_large(tables) else None


def _fixed(rows, how, seed):
    """Return rows as a model takes them outside of `fit`: dynamic binary draws are made once."""
    return binarize(rows, "static" if how == "dynamic" else how, seed)
