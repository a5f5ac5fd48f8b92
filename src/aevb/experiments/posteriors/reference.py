"""The reference posteriors: data, and moments from 10,000 reference draws each.

Magnusson, Torgander, Bürkner, Zhang, Carpenter and Vehtari, "posteriordb" (2024).
"""

import gzip
import json
import re
from typing import Any, NamedTuple

import numpy as np

from aevb.data.download import find
from aevb.data.tables import DataFileError
from aevb.experiments.posteriors.regressions import REGRESSIONS
from aevb.experiments.posteriors.structured import STRUCTURED

FOLDER = "posteriordb"  # below AEVB_DATA
MODELS: dict[str, dict[str, Any]] = dict(sorted({**REGRESSIONS, **STRUCTURED}.items()))
MAX_MEAN_ERROR, MAX_STD_ERROR = 0.1, 0.1  # what counts as right: in reference standard deviations, and relative


class Reference(NamedTuple):
    """The data of a posterior and its moments."""

    data: dict[str, np.ndarray]
    moments: dict[str, dict[str, float]]  # mean, sd, q05, q50, q95 by name, such as beta[1]


class Errors(NamedTuple):
    """How far moments are from the reference: the largest over all numbers."""

    mean: float  # in reference standard deviations
    std: float  # relative
    worst: str  # the number with the largest of both

    @property
    def is_right(self) -> bool:
        """Whether both are small enough."""
        return self.mean <= MAX_MEAN_ERROR and self.std <= MAX_STD_ERROR


def load_reference(name: str) -> Reference:
    """Return the data and the reference moments of a posterior, a key of ``MODELS``.

    Raises:
        DataFileError: Its file is not in the folder of ``AEVB_DATA``.
    """
    path = find(FOLDER, f"{name}.json.gz")
    if path is None:
        raise DataFileError(
            f"{FOLDER}/{name}.json.gz: not found. Set AEVB_DATA to a folder that contains {FOLDER}/, with data and "
            "reference moments of stan-dev/posteriordb."
        )
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found = json.load(file)
    return Reference({key: np.asarray(value) for key, value in found["data"].items()}, found["reference"])


def compare(moments: dict[str, tuple[np.ndarray, np.ndarray]], reference: Reference) -> Errors:
    """Compare means and standard deviations, arrays by name, with the reference.

    Example:
        >>> reference = Reference({}, {"beta[2]": {"mean": 1.0, "sd": 2.0}})
        >>> compare({"beta": (np.array([0.0, 2.0]), np.array([1.0, 2.0]))}, reference)
        Errors(mean=0.5, std=0.0, worst='beta[2]')
    """
    found = []
    for name, expected in reference.moments.items():
        variable, place = re.fullmatch(r"([^\[]+)(?:\[([\d,]+)\])?", name).groups()  # pyright: ignore
        index = tuple(int(number) - 1 for number in place.split(",")) if place else ()  # counted from 1
        mean, std = (float(np.asarray(part)[index]) for part in moments[variable])
        found.append((abs(mean - expected["mean"]) / expected["sd"], abs(std / expected["sd"] - 1), name))
    return Errors(
        max(row[0] for row in found), max(row[1] for row in found), max(found, key=lambda row: max(row[:2]))[2]
    )
