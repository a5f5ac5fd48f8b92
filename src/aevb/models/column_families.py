"""How columns of one family become a block of p(x|z): the registry of families for tables.

To add a family for columns, add an entry to ``COLUMN_FAMILIES`` and to ``KINDS`` in :mod:`aevb.models.column`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array
from numpyro.distributions import transforms

from aevb.arrays import filled
from aevb.distributions import Histogram, Levels, OrderedLevels, PiecewiseLinear, QuantileNormal, from_positions
from aevb.models.column import Column
from aevb.models.families import FAMILIES, REAL, Family, Parameter, above, limited

FAR_GAP = 20.0  # log distance of the thresholds beyond the last one
START_DF = float(np.log(np.expm1(5.0 - 2.0)))  # the number from which `above` makes 5 degrees of freedom

Columns = tuple[Column, ...]


@dataclass(frozen=True)
class ColumnFamily:
    """How a family is used for columns.

    Args:
        family: Function from columns to the family of their joint distribution.
        start: Function from a column and the padded number of levels to the real numbers by which its parameters,
            those of the network and the shared ones, are shifted; by name.
        to_units: Function from columns to the transformation from stored numbers to the user's units; None if they are
            the same.
    """

    family: Callable[[Columns], Family]
    start: Callable[[Column, int], dict[str, Any]] = lambda column, num_levels: {}
    to_units: Callable[[Columns], Any] | None = None


@dataclass(frozen=True)
class Block:
    """Columns of one family, and for levels of nearly the same number: one call for all of them.

    Args:
        name: Of the block, the same for the same columns.
        columns: The columns.
        places: Their places in the table.
    """

    name: str
    columns: Columns
    places: tuple[int, ...]

    @property
    def _facts(self) -> ColumnFamily:
        return COLUMN_FAMILIES[self.columns[0].family]

    @cached_property
    def family(self) -> Family:
        """The family of the columns together."""
        return self._facts.family(self.columns)

    @property
    def num_outputs(self) -> int:
        """The number of network outputs that it needs."""
        return self.family.num_outputs(len(self.columns))

    def shared(self) -> dict[str, Array]:
        """Return the parameters that are the same for all rows, zero."""
        return self.family.shared(len(self.columns))

    def at(self, outputs: Array, shared: dict[str, Array]) -> dist.Distribution:
        """Return the distribution for outputs (..., num_outputs); zeros give each column's own distribution."""
        shifts = [np.ravel(self.shifts[name]) for name in self.family.parameters]
        outputs = outputs + jnp.asarray(np.concatenate(shifts), outputs.dtype)
        shared = {name: raw + jnp.asarray(self.shifts[name], raw.dtype) for name, raw in shared.items()}
        return self.family.at(outputs, len(self.columns), **shared)

    @property
    def to_units(self) -> Any:
        """The transformation from stored numbers to the user's units, or None."""
        return None if self._facts.to_units is None else self._facts.to_units(self.columns)

    @cached_property
    def shifts(self) -> dict[str, np.ndarray]:
        """What is added to the real numbers behind each parameter, by name: (d,) or (d, K)."""
        count = len(self.columns)
        of_columns = [self._facts.start(column, padded_levels(column)) for column in self.columns]
        starts = {name: np.array([start[name] for start in of_columns]) for name in of_columns[0]}
        return {name: np.zeros(parameter.size(count)) for name, parameter in self.family.parameters.items()} | starts


def padded_levels(column: Column) -> int:
    """Return the next power of two of the number of levels, at least 2, so that there are few different ones.

    Example:
        >>> [padded_levels(Column("a", "ordinal", num_levels=number)) for number in (2, 5, 8)]
        [2, 8, 8]
    """
    return 1 << max(column.num_levels - 1, 1).bit_length()


@lru_cache(maxsize=64)
def blocks_of(columns: Columns) -> tuple[Block, ...]:
    """Return the columns in blocks.

    Example:
        >>> blocks = blocks_of((Column("a", "gaussian"), Column("b", "ordinal", num_levels=3), Column("c", "gaussian")))
        >>> [(block.name, block.places) for block in blocks]
        [('gaussian', (0, 2)), ('ordinal-4', (1,))]
    """
    places: dict[str, list[int]] = {}
    for place, column in enumerate(columns):
        name = f"{column.family}-{padded_levels(column)}" if column.kind.has_levels else column.family
        places.setdefault(name, []).append(place)
    return tuple(Block(name, tuple(columns[place] for place in of), tuple(of)) for name, of in places.items())


# ---- families --------------------------------------------------------------------------------------------------------


def _student_t(columns):
    def distribution(loc, log_scale, df):
        return dist.StudentT(above(2.0)(df), loc, jnp.exp(log_scale), validate_args=False).to_event(1)

    # Outputs are log variances, limited as those of a Gaussian.
    parameters = {"loc": Parameter(REAL), "log_scale": Parameter(lambda v: limited(v) / 2)}
    return Family(parameters, distribution, lambda d: {"df": filled(d, 0)})


def _categorical(columns):
    K, num_levels = padded_levels(columns[0]), tuple(column.num_levels for column in columns)
    is_ordered = columns[0].family == "free-ordinal"

    def distribution(logits):
        logits = logits.reshape(*logits.shape[:-1], len(columns), K)
        return Levels(logits, num_levels, is_ordered=is_ordered, validate_args=False).to_event(1)

    return Family({"logits": Parameter(REAL, size=lambda d: d * K)}, distribution)


def _ordinal(columns):
    K, num_levels = padded_levels(columns[0]), tuple(column.num_levels for column in columns)
    ordered = transforms.OrderedTransform()

    def distribution(loc, thresholds):
        return OrderedLevels(loc, ordered(thresholds), num_levels, validate_args=False).to_event(1)

    return Family({"loc": Parameter(REAL)}, distribution, lambda d: {"thresholds": filled((d, K - 1), 0)})


def _histogram(columns):
    K, edges = padded_levels(columns[0]), _standardized_edges(columns)

    def distribution(logits):
        logits = logits.reshape(*logits.shape[:-1], len(columns), K)
        return Histogram(logits, edges, validate_args=False).to_event(1)

    return Family({"logits": Parameter(REAL, size=lambda d: d * K)}, distribution)


def _quantile_gaussian(columns):
    edges = _standardized_edges(columns)
    scores, steps = (tuple(getattr(column, name) for column in columns) for name in ("scores", "single_values"))

    def distribution(loc, log_variance):
        return QuantileNormal(loc, log_variance / 2, scores, edges, steps, validate_args=False).to_event(1)

    return Family({"loc": Parameter(REAL), "log_variance": Parameter(limited)}, distribution)


def _standardized_edges(columns):
    return tuple(tuple((edge - column.loc) / column.scale for edge in column.edges) for column in columns)


# ---- starts ----------------------------------------------------------------------------------------------------------


def _count_start(*names):
    return lambda column, _: dict(zip(names, column.start or (0.0,) * len(names), strict=True))


def _categorical_start(column, num_levels):
    return {"logits": [*(column.start or (0.0,) * column.num_levels), *[0.0] * (num_levels - column.num_levels)]}


def _ordinal_start(column, num_levels):
    """Return the first threshold and the log distances between them, as `OrderedTransform` takes them."""
    levels = np.arange(1, column.num_levels)
    thresholds = np.array(column.start) if column.start else np.log(levels / (column.num_levels - levels))
    gaps = np.log(np.maximum(np.diff(thresholds), 1e-6))
    return {"thresholds": [*thresholds[:1], *gaps, *[FAR_GAP] * (num_levels - max(column.num_levels, 1))]}


# ---- units -----------------------------------------------------------------------------------------------------------


def _standardized(columns):
    return transforms.AffineTransform(_array(columns, "loc"), _array(columns, "scale"))


def _exponential(columns):
    return transforms.ComposeTransform([_standardized(columns), transforms.ExpTransform()])


def _from_cells(columns):
    return transforms.ComposeTransform([from_positions(_standardized_edges(columns)), _standardized(columns)])


def _from_scores(columns):
    to_numbers = PiecewiseLinear(tuple(column.scores for column in columns), _standardized_edges(columns))
    return transforms.ComposeTransform([to_numbers, _standardized(columns)])


def _between_ends(columns):
    low, high = _array(columns, "low"), _array(columns, "high")
    ends = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([_standardized(columns), transforms.SigmoidTransform(), ends])


def _array(columns, name):
    return jnp.asarray([getattr(column, name) for column in columns], jnp.result_type(float))


COLUMN_FAMILIES = {
    "gaussian": ColumnFamily(lambda _: FAMILIES["gaussian"], to_units=_standardized),
    "student-t": ColumnFamily(_student_t, lambda *_: {"df": START_DF}, _standardized),
    "lognormal": ColumnFamily(lambda _: FAMILIES["gaussian"], to_units=_exponential),
    "bounded": ColumnFamily(lambda _: FAMILIES["gaussian"], to_units=_between_ends),
    "quantile-gaussian": ColumnFamily(_quantile_gaussian, to_units=_from_scores),
    "poisson": ColumnFamily(lambda _: FAMILIES["poisson"], _count_start("log_rate")),
    "negative-binomial": ColumnFamily(
        lambda _: FAMILIES["negative-binomial"], _count_start("log_mean", "log_concentration")
    ),
    "bernoulli": ColumnFamily(lambda _: FAMILIES["bernoulli"], _count_start("logits")),
    "categorical": ColumnFamily(_categorical, _categorical_start),
    "ordinal": ColumnFamily(_ordinal, _ordinal_start),
    "free-ordinal": ColumnFamily(_categorical, _categorical_start),
    "histogram": ColumnFamily(_histogram, _categorical_start, _from_cells),
}
