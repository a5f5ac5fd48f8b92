"""A picture of a report: what it shows, and for which models."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from aevb.fitted import FittedModel


class Picture(NamedTuple):
    """A picture of a model and its data, a `RunData` or a `SequenceData`."""

    heading: str
    caption: Callable[[FittedModel, Any], str]
    fits: Callable[[FittedModel, Any], bool]
    draw: Callable[[FittedModel, Any, Path, int], Path]


def words(text: str) -> Callable[[FittedModel, Any], str]:
    """Return a caption that is the same for all models."""
    return lambda model, run_data: text
