"""Data of a run, cut into what is learned from and what is kept aside."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from aevb.data.binarization import binarize
from aevb.data.checks import check_parameter, check_rows
from aevb.data.datasets import Dataset
from aevb.data.own import open_dataset


@dataclass(frozen=True)
class DataSettings:
    """Which data, and how they are taken: the table [data] of a run's `config.toml`.

    Args:
        source: Name of a data set, or a path.
        binarization: What grey levels are taken for; None: as the data come.
        test_fraction: Share of the rows kept aside; a published split goes before it.
        label_column: Of a `.csv` file.
        image_shape: (height, width).
        seed: Of the split and of the binary draws.
    """

    source: str
    binarization: str | None = None
    test_fraction: float = 0.1
    label_column: str | None = None
    image_shape: tuple[int, int] | None = None
    seed: int = 0

    def written(self) -> dict[str, Any]:
        """Return the table."""
        return asdict(self)


class Trial(NamedTuple):
    """The data of a run."""

    dataset: Dataset  # as it came
    learn: Any  # what `fit` takes
    valid: Any  # its validation_data, or None
    train: np.ndarray  # (N, D): the rows to learn from, as numbers that a model takes
    test: np.ndarray  # (n, D): those kept aside
    train_labels: np.ndarray | None
    test_labels: np.ndarray | None
    split: str  # in words
    binarization: str  # in one word


def prepare(settings: DataSettings, report=lambda *_: None) -> Trial:
    """Load the data and cut them.

    Raises:
        ValueError: Naming what is wrong with the data or the settings.
    """
    check_parameter("test_fraction", settings.test_fraction, kind=float, above=0, high=0.9)
    height_and_width = None
    if settings.image_shape is not None:
        height, width = settings.image_shape
        height_and_width = (height, width)
    dataset = open_dataset(
        settings.source, label_column=settings.label_column, image_shape=height_and_width, report=report
    )
    check_rows(dataset.rows, None, name=settings.source)  # here, where a row's number is that in the file
    parts, split = _parts(dataset, settings)
    how = settings.binarization or "grey"
    # Each part has draws of its own, so that it does not matter which others are loaded.
    seeds = {name: [settings.seed, number] for number, name in enumerate(("train", "valid", "test"))}
    fixed = {name: _fixed(dataset.rows[rows], how, seeds[name]) for name, rows in parts.items()}
    learn = binarize(dataset.rows[parts["train"]], how) if how == "dynamic" else fixed["train"]
    labels = {name: None if dataset.labels is None else dataset.labels[rows] for name, rows in parts.items()}
    binarization = dataset.binarization if how == "grey" else how
    return Trial(
        dataset, learn, fixed.get("valid"), fixed["train"], fixed["test"], labels["train"], labels["test"], split,
        binarization,
    )  # fmt: skip


def _parts(dataset, settings):
    if dataset.parts is not None:
        sizes = ", ".join(f"{name} {len(rows):,}" for name, rows in dataset.parts.items())
        return dataset.parts, f"as published or in the literature: {sizes}"
    num_rows = len(dataset.rows)
    num_test = int(settings.test_fraction * num_rows)
    if num_test < 1 or num_rows - num_test < 2:
        raise ValueError(f"{settings.source} has {num_rows} rows: too few to learn from some and keep others aside.")
    train, test = dataset.split(num_test, settings.seed)
    how = "by label in proportion" if dataset.labels is not None else "at random"
    return {"train": train, "test": test}, f"test: {num_test} of {num_rows} rows, {how}, no part in learning"


def _fixed(rows, how, seed):
    """Return rows as a model is given them outside of `fit`: dynamic draws are drawn once."""
    return binarize(rows, "static" if how == "dynamic" else how, seed)
