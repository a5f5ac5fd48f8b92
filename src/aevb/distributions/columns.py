"""The row of a table: independent columns of different families, laid out as one vector."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.distributions import Distribution, Independent, StudentT, constraints
from numpyro.distributions.batch_util import promote_batch_shape
from numpyro.distributions.transforms import AffineTransform, Transform

from aevb.distributions.histogram import Histogram
from aevb.distributions.levels import AbstractLevels
from aevb.distributions.quantile_normal import QuantileNormal

NUM_POINTS = 20  # of the quadrature of a mean
REACH = 5.0  # standard deviations of a column; larger numbers are not expected in a mean


class Columns(Distribution):
    r"""Independent columns, in blocks of one family each, as one vector x of stored numbers.

    .. math:: \log p(x) = \sum_i \log p_i(x_i) - \log \left| \frac{dT_i}{dx_i} \right|

    A stored number is a standardized one, a count, or the code of a level; draws, means and modes are rows of such
    numbers. T maps it to the user's units, in which the densities are.

    Args:
        blocks: For each block, a distribution over a vector (d,) of independent entries (``to_event(1)``).
        places: For each block, the places of its entries in x. Together they are 0, ..., D - 1.
        transforms: For each block, T, or None where stored numbers are in the user's units.

    Example:
        >>> import numpyro.distributions as dist
        >>> from aevb.distributions import Levels
        >>> heights = dist.Normal(jnp.zeros(2), 1.0).to_event(1)
        >>> colours = Levels(jnp.log(jnp.array([[0.2, 0.3, 0.5]]))).to_event(1)
        >>> p = Columns([heights, colours], places=[(0, 2), (1,)])
        >>> print(f"{p.log_prob(jnp.array([0.0, 2.0, 0.0])):.3f}")
        -2.531
        >>> [round(number, 3) for number in p.statistics().tolist()]
        [0.0, 0.2, 0.3, 0.5, 0.0]
        >>> p.row_from_statistics(p.statistics()).tolist()
        [0.0, 2.0, 0.0]
    """

    pytree_data_fields = ("blocks", "transforms")
    pytree_aux_fields = ("places",)

    def __init__(
        self,
        blocks: Sequence[Distribution],
        places: Sequence[Sequence[int]],
        transforms: Sequence[Transform | None] | None = None,
    ):
        self.blocks: tuple[Any, ...] = tuple(_entries(block) for block in blocks)
        self.places = tuple(tuple(map(int, place)) for place in places)
        self.transforms = (None,) * len(self.blocks) if transforms is None else tuple(transforms)
        D = sum(map(len, self.places))
        if sorted(place for block in self.places for place in block) != list(range(D)):
            raise ValueError(f"places: got {self.places}, expected each of 0, ..., {D - 1} once.")
        for block, place in zip(self.blocks, self.places, strict=True):
            if block.batch_shape[-1:] != (len(place),):
                raise ValueError(f"places: {len(place)} of a block with entries of shape {block.batch_shape}.")
        super().__init__(self.blocks[0].batch_shape[:-1], (D,), validate_args=False)

    # ---- densities ---------------------------------------------------------------------------------------------------

    def log_prob(self, value: Any, intermediates: Any = None) -> Array:
        """Return the log density of rows (..., D), in the user's units."""
        return self.observed_log_prob(value, None)

    def observed_log_prob(self, value: Any, observed: Any) -> Array:
        """Return the log density of the observed entries; what stands at missing ones has no effect.

        Args:
            value: Rows, (..., D).
            observed: Booleans, (..., D), or None for all.
        """
        terms = self._log_probs(value, observed)
        return sum((jnp.sum(term, axis=-1) for term in terms[1:]), start=jnp.sum(terms[0], axis=-1))

    def entry_log_probs(self, value: Any, observed: Any = None) -> Array:
        """Return the log density of each entry in the user's units, (..., D); zero where missing."""
        return self._in_order(self._log_probs(value, observed))

    def log_jacobians(self, value: Any) -> Array:
        """Return the log derivatives of the stored numbers with respect to the user's, (..., D)."""
        shape = jnp.broadcast_shapes(jnp.shape(value), self.shape())
        pieces = self._pieces(jnp.broadcast_to(value, shape))
        return self._in_order(
            [_log_jacobian(transform, x) for transform, x in zip(self.transforms, pieces, strict=True)]
        )

    def _log_probs(self, value, observed):
        """Return the log densities of the entries, block by block."""
        return [
            _observed_log_probs(block, transform, x, seen)
            for block, transform, x, seen in zip(
                self.blocks, self.transforms, self._pieces(value), self._pieces(observed), strict=True
            )
        ]

    # ---- draws and moments -------------------------------------------------------------------------------------------

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw rows of stored numbers."""
        keys = jax.random.split(key, len(self.blocks))
        return self._in_order([block.sample(key, sample_shape) for block, key in zip(self.blocks, keys, strict=True)])

    @property
    def mean(self) -> Array:
        """The means of stored numbers and counts and the probabilities of 1; of columns with levels, the modes."""
        return self._in_order([block.mode if _has_levels(block) else block.mean for block in self.blocks])

    @property
    def expectation(self) -> Array:
        """The same, but of columns with cells the means of the numbers, which unlike positions can be averaged."""
        return self._in_order([block.mode if _has_levels(block) else _expectation(block) for block in self.blocks])

    @property
    def variance(self) -> Array:
        """The variances of stored numbers and counts; NaN for columns with levels, whose codes are only names.

        Of columns with cells, those of the numbers, in their own standard deviations.
        """
        return self._in_order(
            [jnp.full(block.batch_shape, jnp.nan) if _has_levels(block) else block.variance for block in self.blocks]
        )

    @property
    def mode(self) -> Array:
        """The most probable stored number of each column."""
        return self._in_order([_mode(block) for block in self.blocks])

    @property
    def support(self) -> Any:
        """Vectors of stored numbers; those of counts and levels are whole."""
        return constraints.real_vector

    # ---- what can be averaged over draws of z ------------------------------------------------------------------------

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many statistics each column has, (D,): one, or one for each of its levels."""
        sizes = [0] * self.event_shape[0]
        for block, places in zip(self.blocks, self.places, strict=True):
            for place, size in zip(places, block.num_levels if _has_levels(block) else (1,) * len(places), strict=True):
                sizes[place] = size
        return tuple(sizes)

    def statistics(self) -> Array:
        r"""Return the expectations that describe a row, (..., S): means, and probabilities of levels.

        Column by column: the mean of the stored number, of the count or of a binary variable, or the probabilities of
        all levels. Where T is not linear, it is the mean in the user's units, by quadrature over the stored numbers
        within five of their units. Being expectations, they can be averaged over z,

        .. math:: E[f(x)|y] \approx \frac{1}{L} \sum_l E[f(x) | z^{(l)}], \quad z^{(l)} \sim p(z | y)

        and the average is what :meth:`row_from_statistics` takes. Codes of levels and modes must not be averaged.
        """
        pieces: list[Any] = [None] * self.event_shape[0]
        for block, places, transform in zip(self.blocks, self.places, self.transforms, strict=True):
            values = block.probabilities if _has_levels(block) else _mean_in_units(block, transform)  # (..., d, K)
            for number, place in enumerate(places):
                pieces[place] = values[..., number, : self.sizes[place]]
        return jnp.concatenate(pieces, axis=-1)

    def by_column(self, statistics: Array) -> list[Array]:
        """Return the statistics of each column, (..., 1) or (..., K)."""
        return jnp.split(statistics, tuple(accumulate(self.sizes))[:-1], axis=-1)

    def row_from_statistics(self, statistics: Array) -> Array:
        """Return the row that statistics (..., S), or averages of them, stand for, (..., D): a single best guess.

        It holds what has the least expected error: the stored numbers of the means of numbers (squared error), the
        nearest whole numbers for counts and binary columns, the medians of ordered levels (distance of ranks), and the
        most probable of the others (share of errors).
        """
        pieces, values = self.by_column(statistics), list[Any](self.event_shape[0] * [statistics])
        for block, places, transform in zip(self.blocks, self.places, self.transforms, strict=True):
            guesses = [_guess(block, pieces[place]) for place in places]
            found = jnp.stack([jnp.asarray(value, statistics.dtype) for value in guesses], axis=-1)
            to_units = block.to_numbers if _has_cells(block) else transform
            if to_units is not None and (_has_cells(block) or _is_curved(block, transform)):
                found = jnp.asarray(to_units.inv(found))
            for number, place in enumerate(places):
                values[place] = found[..., number]
        return jnp.stack(values, axis=-1)

    # ---- layout ------------------------------------------------------------------------------------------------------

    def _pieces(self, value):
        """Return the entries of each block, (..., d)."""
        if value is None:
            return [None] * len(self.blocks)
        return [jnp.asarray(value)[..., _index(places)] for places in self.places]

    def _in_order(self, pieces):
        """Return the entries of all blocks, (..., D), in floating point."""
        pieces = [jnp.asarray(piece, jnp.result_type(float)) for piece in pieces]
        shape = jnp.broadcast_shapes(*(piece.shape[:-1] for piece in pieces))
        joined = jnp.concatenate([jnp.broadcast_to(piece, (*shape, piece.shape[-1])) for piece in pieces], axis=-1)
        order = np.argsort(np.concatenate(self.places))
        return joined if (order == np.arange(len(order))).all() else joined[..., order]


def _observed_log_probs(block, transform, x, observed):
    """Return the log densities of the entries of a block in the user's units, zero where missing."""
    if observed is not None:
        # `where` twice: otherwise a NaN would reach the gradient through the branch that is not chosen.
        x = jnp.where(observed, x, block.support.feasible_like(x))
    log_probs = block.log_prob(x)
    if transform is not None:
        log_probs = log_probs + _log_jacobian(transform, jnp.broadcast_to(x, log_probs.shape))
    return log_probs if observed is None else jnp.where(observed, log_probs, 0)


def _log_jacobian(transform, x):
    """Return log |dx/dT(x)| of each entry."""
    return jnp.zeros_like(x) if transform is None else -transform.log_abs_det_jacobian(x, transform(x))


def _entries(block):
    """Return the independent entries of a block, as a batch."""
    return block.base_dist if isinstance(block, Independent) else block


def _has_levels(block):
    return isinstance(block, AbstractLevels)


def _has_cells(block):
    return isinstance(block, Histogram | QuantileNormal)


def _mode(block):
    try:
        return block.mode
    except NotImplementedError:  # of symmetric ones and of binary variables
        return jnp.round(block.mean) if block.support.is_discrete else block.mean


def _index(places):
    """Return the places as a slice where they are neighbours, which costs nothing."""
    first, last = places[0], places[-1]
    return slice(first, last + 1) if places == tuple(range(first, last + 1)) else np.array(places)


def _expectation(block):
    """Return the means of stored numbers; of those with cells, of the numbers that the positions stand for."""
    return block.expectation if _has_cells(block) else block.mean


def _is_curved(block, transform):
    """Whether a mean in the user's units is not that of the stored numbers; those with cells have their own rule."""
    return not (transform is None or isinstance(transform, AffineTransform) or _has_cells(block))


def _mean_in_units(block, transform):
    r"""Return :math:`E[T(u)]` where T is curved and u a normal variable, else the mean of u, (..., d, 1).

    The expectation of an exponential depends on how far out it is taken: a little too much variance, and it lies beyond
    all data. Numbers further out than any that are likely to be observed are therefore moved to the limit.
    """
    if not _is_curved(block, transform):
        return _expectation(block)[..., None]
    points, weights = np.polynomial.hermite_e.hermegauss(NUM_POINTS)
    points = points.reshape(-1, *[1] * jnp.ndim(block.mean))
    u = jnp.clip(block.loc + block.scale * points, -REACH, REACH)  # (P, ..., d)
    return jnp.tensordot(weights / weights.sum(), jnp.asarray(transform(u)), 1)[..., None]


def _guess(block, statistics):
    """Return the number that the statistics of one of the entries of a block stand for."""
    if _has_levels(block):
        return _median(statistics) if block.is_ordered else jnp.argmax(statistics, axis=-1)
    return jnp.round(statistics[..., 0]) if block.support.is_discrete else statistics[..., 0]


def _median(probabilities):
    """Return the first code at which the sum of the probabilities reaches one half."""
    return jnp.sum(jnp.cumsum(probabilities, axis=-1) < 0.5 - 1e-6, axis=-1)


@promote_batch_shape.register
def _promote_student_t(p: StudentT):
    # NumPyro's rule for all distributions leaves the one inside as it was.
    return StudentT(p.df, p.loc, p.scale, validate_args=False)


@promote_batch_shape.register
def _promote_columns(p: Columns):
    """Return what `vmap` made of one row's distribution, with the new axes as batch axes."""
    blocks = [promote_batch_shape(block) for block in p.blocks]
    return Columns(blocks, p.places, p.transforms)
