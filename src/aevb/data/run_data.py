"""The data of a run, split into training and held-out rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aevb.data.binarization import binarize, level_scale
from aevb.data.checks import check_rows
from aevb.data.data_settings import DataSettings
from aevb.data.datasets import DATASETS, Dataset
from aevb.data.frames import COLUMN_KINDS, frame_of
from aevb.data.frames.parts import take_rows
from aevb.data.image_folder import AS_THEY_ARE, PictureOptions
from aevb.data.own import described, open_dataset, own_labels, own_tables
from aevb.data.own_frame import open_own_frame
from aevb.data.picture_table import picture_labels, picture_table
from aevb.data.remote import is_url, nearby
from aevb.data.remote_tables import remote_tables
from aevb.data.scan import pick
from aevb.data.table import NamedColumns, SomeRows, Table
from aevb.data.tables import ending_of, is_image_folder
from aevb.errors import DataFileError, shown
from aevb.fitted import FittedModel

MAX_ROWS = 10_000  # held-out rows, and rows shown, of data larger than memory


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
    train_given: np.ndarray | None = None  # (N, D'), what the training rows are conditioned on, as stored numbers
    test_given: np.ndarray | None = None  # (n, D')

    @property
    def summary(self) -> str:
        """What was read, in one line."""
        num_learn = self.num_train + (0 if self.valid is None else len(self.valid))
        return f"{self.dataset.title}: {num_learn:,} for training, {len(self.test):,} held out."

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `VAE.fit`."""
        return {"X": self.learn, "validation_data": self.valid}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns; none if they have none."""
        return self.dataset.columns or ()

    @property
    def decided(self) -> dict[str, str]:
        """What was decided about the data and is kept with their settings: the pictures' polarity."""
        return {"polarity": "light" if self.dataset.light_on_dark else "ink"} if self.dataset.image_shape else {}

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
    image_shape = None if settings.image_shape is None else tuple(settings.image_shape)
    columns = {"label_column": settings.label_column, "drop_columns": settings.drop_columns}
    if (tables := large_tables(settings.source, **columns, pictures=settings.pictures)) is not None:
        return _prepare_large(settings, tables, image_shape)
    settings = replace(settings, source=str(nearby(settings.source, report)))
    frame = open_own_frame(settings.source, likelihood, drop_missing=settings.drop_missing, **columns)
    if frame is not None:
        return _prepare_frame(settings, frame)
    dataset = open_dataset(
        settings.source,
        **columns,
        image_shape=image_shape,
        pictures=settings.pictures,
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
    path = Path(settings.source)
    is_folder = is_image_folder(path)
    every = picture_labels(path) if is_folder else own_labels(path, settings.label_column, num_rows)
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
        raise ValueError(f"{settings.source} has too few rows ({num_rows}) to train on some and hold out others.")
    return num_test


def large_tables(
    source: str,
    label_column: str | None = None,
    drop_columns: Sequence[str] = (),
    pictures: PictureOptions = AS_THEY_ARE,
) -> list[Table] | None:
    """Return the tables of data that do not fit into memory; None for other data, and for those with words."""
    from aevb.data.training_data import is_large

    if is_url(source):
        tables = None if label_column or drop_columns else remote_tables(source)
        return tables if tables is not None and is_large(tables) else None
    path = Path(source)
    may_be_large = ending_of(path) in (".npy", ".npz", ".parquet") or path.is_dir()
    if source in DATASETS or not path.exists() or not may_be_large:
        return None
    try:
        is_folder = is_image_folder(path)
        tables = [picture_table(path, pictures)] if is_folder else own_tables(path, label_column, drop_columns)
    except DataFileError:
        return None  # reading it as a frame works, or reading it at once says what is wrong
    return tables if is_large(tables) else None


def _fixed(rows, how, seed):
    """Return rows as a model takes them outside of `fit`: dynamic binary draws are made once."""
    return binarize(rows, "static" if how == "dynamic" else how, seed)
