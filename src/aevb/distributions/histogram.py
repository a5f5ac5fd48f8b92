"""Numbers in cells: the probabilities of intervals, and a uniform density inside each of them."""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array
from numpyro.distributions import constraints

from aevb.distributions.levels import FAR
from aevb.distributions.piecewise_linear import Edges, PiecewiseLinear


class Histogram(dist.Distribution):
    r"""Numbers whose density is constant in each of K cells, with exponential tails beyond the first and last edge.

    A value is the position u among the cells: its whole part is the number of the cell, and the rest is how far it is
    from the cell's lower to its upper edge; below 0 and above K are the tails.

    .. math:: \log p(u) = \log \mathrm{softmax}(l)_{k(u)} + \min(u, 0) - \max(u - K, 0)

    :func:`from_positions` maps positions to numbers. Any density can be approximated, and values that occur very often
    have narrow cells of their own.

    Args:
        logits: (..., d, L), of the lower tail, the cells and the upper tail; those beyond a variable's own are ignored.
        edges: Of each variable the K + 1 edges of its cells, K + 2 being at most L.
        validate_args: As in numpyro.

    Example:
        >>> p = Histogram(jnp.log(jnp.array([[0.1, 0.3, 0.4, 0.2]])), edges=((0.0, 1.0, 5.0),))
        >>> print(jnp.exp(p.log_prob(jnp.array([1.25]))).round(3))  # a quarter of the way from 1 to 5
        [0.4]
        >>> print(f"{p.expectation[0]:.3f}, {p.mean[0]:.3f}")  # 0.1 (-1) + 0.3 (0.5) + 0.4 (3) + 0.2 (6)
        2.450, 1.362
    """

    arg_constraints = {"logits": constraints.real_vector}
    pytree_aux_fields = ("edges",)

    def __init__(self, logits: Any, edges: Edges, *, validate_args: bool | None = None):
        self.edges = edges
        is_level = _facts(edges, logits.shape[-1]).is_level
        self.logits = logits if is_level.all() else jnp.where(is_level, logits, -FAR)
        super().__init__(jnp.shape(logits)[:-1], validate_args=validate_args)

    def log_prob(self, value: Any, intermediates: Any = None) -> Array:
        """Return the log densities of positions (..., d)."""
        num_cells, num_levels = _facts(self.edges, self.logits.shape[-1]).num_cells, self.logits.shape[-1]
        # A sum over all levels instead of a look-up, whose gradient XLA computes row by row on a CPU.
        is_chosen = level_of(value, num_cells)[..., None] == jnp.arange(num_levels)
        chosen = jnp.sum(jnp.where(is_chosen, self.logits, 0), axis=-1) - jax.nn.logsumexp(self.logits, axis=-1)
        return chosen + jnp.minimum(value, 0) - jnp.maximum(value - num_cells, 0)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw positions."""
        shape = (*sample_shape, *self.batch_shape)
        key_level, key_place = jax.random.split(key)
        levels = jax.random.categorical(key_level, self.logits, shape=shape)
        num_cells = _facts(self.edges, self.logits.shape[-1]).num_cells
        # Half open, so that a position stays in its cell; in float32 a cell has at least 2^16 positions.
        inside = jnp.minimum(jax.random.uniform(key_place, shape, self.logits.dtype), 1 - 2.0**-16)
        beyond = -jnp.log1p(-inside)
        return jnp.where(levels == 0, -beyond, jnp.where(levels > num_cells, num_cells + beyond, levels - 1 + inside))

    @property
    def probabilities(self) -> Array:
        """Probabilities of the lower tail, the cells and the upper tail, (..., d, L)."""
        return jax.nn.softmax(self.logits)

    @property
    def expectation(self) -> Array:
        """The means of the numbers, (..., d), in the unit of the edges; unlike positions they can be averaged."""
        return jnp.sum(self.probabilities * self._constants.centers, axis=-1)

    @property
    def mean(self) -> Array:
        """The positions of the means."""
        return jnp.asarray(self.to_numbers.inv(self.expectation))

    @property
    def variance(self) -> Array:
        """The variances of the numbers, in the unit of the edges."""
        facts = self._constants
        spread = facts.variances + (facts.centers - self.expectation[..., None]) ** 2
        return jnp.sum(self.probabilities * spread, axis=-1)

    @property
    def to_numbers(self) -> PiecewiseLinear:
        """From positions to numbers."""
        return from_positions(self.edges)

    @property
    def mode(self) -> Array:
        """The middle of the most probable cell."""
        return jnp.argmax(self.logits[..., 1:], axis=-1) + 0.5

    @property
    def support(self) -> Any:
        """All positions."""
        return constraints.real

    @property
    def _constants(self):
        facts = _facts(self.edges, self.logits.shape[-1])
        return facts._replace(
            centers=jnp.asarray(facts.centers, self.logits.dtype),
            variances=jnp.asarray(facts.variances, self.logits.dtype),
        )


def from_positions(edges: Edges) -> PiecewiseLinear:
    """Return the function from positions among cells to numbers: linear in each cell, with slope 1 beyond them.

    Example:
        >>> from_positions(((0.0, 1.0, 5.0),))(jnp.array([[1.25], [-2.0], [3.0]])).tolist()
        [[2.0], [-2.0], [6.0]]
    """
    return PiecewiseLinear(tuple(tuple(map(float, range(len(of)))) for of in edges), edges)


def level_of(position: Any, num_cells: Any) -> Array:
    """Return 0 for the lower tail, 1, ..., K for the cells, and K + 1 for the upper tail."""
    return jnp.clip(jnp.floor(position) + 1, 0, jnp.asarray(num_cells) + 1)


class _Facts(NamedTuple):
    """Constants of the cells; the arrays are (d, L), in the order lower tail, cells, upper tail, padding."""

    num_cells: np.ndarray  # (d,)
    is_level: np.ndarray
    centers: Any
    variances: Any


@lru_cache(maxsize=64)
def _facts(edges, num_levels=None):
    L = num_levels or max(map(len, edges)) + 1
    num_cells = np.array([len(of) - 1 for of in edges], np.int32)
    starts, widths = np.full((len(edges), L), FAR), np.ones((len(edges), L))
    for row, of in enumerate(edges):
        starts[row, : len(of) + 1] = [of[0], *of]
        widths[row, 1 : len(of)] = np.diff(of)
    is_level = np.arange(L) < num_cells[:, None] + 2
    centers, variances = starts + widths / 2, widths**2 / 12
    centers[:, 0], variances[:, 0] = starts[:, 0] - 1, 1.0  # exponential tails
    last = np.arange(len(edges)), num_cells + 1
    centers[last], variances[last] = starts[last] + 1, 1.0
    return _Facts(num_cells, is_level, np.where(is_level, centers, 0), np.where(is_level, variances, 0))
