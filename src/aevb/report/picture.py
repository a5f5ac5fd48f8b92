"""A picture of a report: what it shows, and for which models."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from aevb.data.run_data import RunData
from aevb.fitted import FittedModel


class Picture(NamedTuple):
    """A picture of a model and its data."""

    heading: str
    caption: Callable[[FittedModel, RunData], str]
    fits: Callable[[FittedModel, RunData], bool]
    draw: Callable[[FittedModel, RunData, Path, int], Path]


def words(text: str) -> Callable[[FittedModel, RunData], str]:
    """Return a caption that is the same for all models."""
    return lambda model, run_data: text
