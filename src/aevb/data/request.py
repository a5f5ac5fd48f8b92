"""How `fit` asks for its data."""

from typing import Any, NamedTuple

import numpy as np

from aevb.data.given import GivenData
from aevb.training import Source


class DataRequest(NamedTuple):
    """How `fit` asks for its data."""

    likelihood: Any  # a name, or names by column
    own_decoder: bool  # a user-defined decoder decides which values are allowed
    batch_size: int | str  # or "auto"
    held_out_fraction: float | str  # or "auto"
    progress: bool
    validation_data: Any = None  # rows given by the user instead of a fraction
    sample_weight: Any = None  # (N,), weights of the rows
    missing: str = "ignored"  # or "modeled"
    given: GivenData | None = None  # what rows are conditioned on

    def conditioned(self, source: Source, numbers: np.ndarray | None = None, *, held_out: bool = False) -> Source:
        """Return rows together with what they are conditioned on, if anything; see :meth:`GivenData.joined`."""
        return source if self.given is None else self.given.joined(source, numbers, held_out=held_out)
