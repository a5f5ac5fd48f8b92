"""What a model knows about one column of a table."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, final

import numpy as np
from scipy.special import expit, logit

from aevb.models.cells import find_cells, from_cells, interpolate, scores_of, shares, to_cells

EDGE = 1e-6  # the share that a number at or beyond an end is stored as: its log odds would be infinite
QUARTILE = 0.7267  # of Student's t with 5 degrees of freedom, with which such a column starts
MAX_LOG_CONCENTRATION = 8.0  # of counts whose variance does not exceed their mean: nearly a Poisson distribution


class Kind(NamedTuple):
    """What a family requires of its column."""

    is_standardized: bool = False  # whether stored numbers are (t(x) - loc) / scale
    is_count: bool = False  # whether the network's input is (log(1 + x) - loc) / scale
    has_levels: bool = False
    has_cells: bool = False  # whether it needs edges, and the shares of the cells between them
    num_starts: int = 0  # numbers in `start`, of columns without levels


KINDS = {
    "gaussian": Kind(is_standardized=True),
    "student-t": Kind(is_standardized=True),
    "lognormal": Kind(is_standardized=True),
    "bounded": Kind(is_standardized=True),
    "quantile-gaussian": Kind(is_standardized=True, has_cells=True),
    "poisson": Kind(is_count=True, num_starts=1),
    "negative-binomial": Kind(is_count=True, num_starts=2),
    "bernoulli": Kind(num_starts=1),
    "categorical": Kind(has_levels=True),
    "ordinal": Kind(has_levels=True),
    "free-ordinal": Kind(has_levels=True),
    "histogram": Kind(has_levels=True, has_cells=True),  # its levels are the lower tail, the cells and the upper tail
}


@final
@dataclass(frozen=True)
class Column:
    r"""The description of a column: its family, its units, and the distribution with which learning starts.

    A table stores one number u for each entry x:

    =================================== ==============================================================================
    family                              stored number
    =================================== ==============================================================================
    "gaussian", "student-t"             :math:`(x - loc) / scale`
    "lognormal"                         :math:`(\log x - loc) / scale`
    "bounded"                           :math:`(\mathrm{logit} \frac{x - low}{high - low} - loc) / scale`
    "quantile-gaussian"                 the normal score, see :class:`aevb.distributions.QuantileNormal`
    "poisson", "negative-binomial"      the count
    "bernoulli"                         0 or 1
    "categorical"                       the code of the level: 0, 1, ...
    "ordinal", "free-ordinal"           the same, in their order; the latter with a free probability for each level
    "histogram"                         the position among cells, see :class:`aevb.distributions.Histogram`
    =================================== ==============================================================================

    Args:
        name: Name of the column.
        family: One of those above.
        loc: See above; for counts, the mean of log(1 + x), for the encoder; with cells, the mean.
        scale: See above; for counts, the standard deviation of log(1 + x); with cells, that of the numbers.
        low: Lower end of a "bounded" column.
        high: Upper end of a "bounded" column.
        num_levels: Number of levels of a column that has them, and of cells and tails of a "histogram".
        start: The distribution of the column by itself, with which learning starts: the log mean of a count, and then
            the log concentration if it is "negative-binomial"; the log odds of 1; the log shares of all categories, or
            of all cells and tails; or the log odds of being at or below each ordered level but the last. Empty for
            rate, concentration and odds of 1, and for equal shares.
        edges: Of the cells of a "histogram" or a "quantile-gaussian" column, in the user's units.
        frequent: Their numbers that have cells of their own.

    Example:
        >>> weight = Column.of("weight", "lognormal", np.array([60.0, 75.0, np.nan, 90.0]))
        >>> weight.in_units(weight.stored(np.array([75.0]))).round(6).tolist()
        [75.0]
        >>> Column.from_description(weight.describe()) == weight
        True
    """

    name: str
    family: str
    loc: float = 0.0
    scale: float = 1.0
    low: float = 0.0
    high: float = 1.0
    num_levels: int = 0
    start: tuple[float, ...] = ()
    edges: tuple[float, ...] = ()
    frequent: tuple[float, ...] = ()

    def __post_init__(self):
        if self.family not in KINDS:
            raise ValueError(f"family: column {self.name!r} has {self.family!r}, expected one of {tuple(KINDS)}.")
        numbers = (self.loc, self.scale, self.low, self.high, *self.start)
        if not all(math.isfinite(number) for number in numbers) or self.scale <= 0 or self.low >= self.high:
            raise ValueError(f"column {self.name!r}: needs finite numbers, scale > 0 and low < high, got {self}.")
        if self.kind.has_levels and self.num_levels < 1:
            raise ValueError(f"num_levels: column {self.name!r} has {self.num_levels}, expected at least 1.")
        if self.kind.has_cells and (len(self.edges) < 2 or self.num_levels != len(self.edges) + 1):
            raise ValueError(
                f"edges: column {self.name!r} has {len(self.edges)}, expected 2 or more, one fewer than num_levels."
            )
        if self.start and len(self.start) != self.num_starts:
            raise ValueError(f"start: column {self.name!r} has {len(self.start)}, expected {self.num_starts} numbers.")

    @property
    def kind(self) -> Kind:
        """What the family requires."""
        return KINDS[self.family]

    @property
    def num_starts(self) -> int:
        """How many numbers `start` has."""
        if not (self.kind.has_levels or self.kind.has_cells):
            return self.kind.num_starts
        return self.num_levels - (self.family == "ordinal")

    @property
    def single_values(self) -> tuple[int, ...]:
        """The numbers of the narrow cells around a frequent number, in their order; the lower tail has number 0."""
        return tuple(np.searchsorted(self.edges, self.frequent).tolist())

    @property
    def scores(self) -> tuple[float, ...]:
        """The normal scores of the edges."""
        equal = (-math.log(self.num_levels),) * self.num_levels
        return tuple(scores_of(self.start or equal).tolist())

    # ---- units -------------------------------------------------------------------------------------------------------

    def stored(self, x: np.ndarray) -> np.ndarray:
        """Return the stored numbers of entries in the user's units; of counts and codes the numbers themselves.

        Numbers at the ends of a "bounded" column are moved inside by a millionth of its width.
        """
        if self.family == "histogram":
            return to_cells(x, self.edges, self.scale)
        if self.family == "quantile-gaussian":
            return interpolate(x, self.edges, self.scores, 1 / self.scale)
        if not self.kind.is_standardized:
            return x
        return (_unstandardized(self.family, x, self.low, self.high) - self.loc) / self.scale

    def in_units(self, u: np.ndarray) -> np.ndarray:
        """Return the entries in the user's units that stored numbers stand for."""
        if self.family == "histogram":
            return from_cells(u, self.edges, self.scale)
        if self.family == "quantile-gaussian":
            return interpolate(u, self.scores, self.edges, self.scale)
        if not self.kind.is_standardized:
            return u
        v = self.loc + self.scale * u
        if self.family == "bounded":
            width = self.high - self.low
            return np.where(v < 0, self.low + width * expit(v), self.high - width * expit(-v))
        return np.exp(v) if self.family == "lognormal" else v

    # ---- from data, and from files -----------------------------------------------------------------------------------

    @classmethod
    def of(
        cls, name: str, family: str, x: np.ndarray, low: float = 0.0, high: float = 1.0, num_levels: int = 0
    ) -> "Column":
        """Return the column that fits entries.

        Args:
            name: Name of the column.
            family: See the class.
            x: Numbers in the user's units, counts or codes, in floating point; NaN where missing.
            low: See the class.
            high: See the class.
            num_levels: See the class.
        """
        x = np.asarray(x, np.float64)
        x = x[~np.isnan(x)]
        loc, scale, start = 0.0, 1.0, ()
        kind = KINDS.get(family, Kind())
        edges, frequent = find_cells(x) if kind.has_cells else ((), ())
        if family in KINDS and len(x):  # otherwise the defaults
            if kind.is_standardized or kind.is_count or edges:
                loc, scale = _location_and_scale(family, _unstandardized(family, x, low, high))
            if edges or not kind.is_standardized:
                start = tuple(map(float, _start(family, x, num_levels, edges)))
        return cls(name, family, loc, scale, low, high, len(edges) + 1 if edges else num_levels, start, edges, frequent)

    def describe(self) -> dict[str, Any]:
        """Return all of it as what JSON can hold."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "Column":
        """Return the column that was described."""
        facts: dict[str, Any] = {}
        for name, value in description.items():
            facts[name] = tuple(value) if isinstance(value, list) else value
        return cls(**facts)


def _unstandardized(family, x, low, high):
    """Return the numbers that are standardized: x, its logarithm, its log odds, or log(1 + x) of counts."""
    if family == "lognormal":
        return np.log(x)
    if family == "bounded":
        share = (x - low) / (high - low)
        return logit(np.where(share <= 0, EDGE, np.where(share >= 1, 1 - EDGE, share)))
    return np.log1p(x) if KINDS[family].is_count else x


def _location_and_scale(family, v):
    """Return mean and standard deviation; for heavy tails, those of the Student's t with the same quartiles."""
    if family == "student-t":
        loc = np.median(v)
        scale = np.median(np.abs(v - loc)) / QUARTILE
        if scale > 0:
            return float(loc), float(scale)
    scale = float(v.std())
    return float(v.mean()), scale if scale > 0 else 1.0


def _start(family, x, num_levels, edges):
    """Return `start`, with half an entry more of each outcome, so that none is impossible."""
    n = len(x)
    if edges:
        return np.log(shares(x, edges))
    if family == "bernoulli":
        return (np.log(x.sum() + 0.5) - np.log(n - x.sum() + 0.5),)
    if KINDS[family].is_count:
        mean, variance = (x.sum() + 0.5) / n, x.var()
        if family == "poisson":
            return (np.log(mean),)
        excess = max(variance - mean, mean**2 * np.exp(-MAX_LOG_CONCENTRATION))
        return np.log(mean), np.log(mean**2 / excess)
    counts = np.bincount(x.astype(int), minlength=num_levels)[:num_levels] + 0.5
    if family != "ordinal":
        return np.log(counts / counts.sum())
    below = np.cumsum(counts)[:-1]
    return np.log(below) - np.log(counts.sum() - below)
