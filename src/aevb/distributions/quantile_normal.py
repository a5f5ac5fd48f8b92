"""Numbers of any shape that are normal after a quantile transformation, with steps at frequent values."""

from functools import lru_cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import log_ndtr, ndtr
from jax.scipy.stats import norm

from aevb.distributions.levels import FAR
from aevb.distributions.log_scale_normal import LogScaleNormal
from aevb.distributions.piecewise_linear import Edges, PiecewiseLinear, segments_of

NARROW = 0.02  # standard deviations: the density hardly changes across a step of that width


class QuantileNormal(LogScaleNormal):
    r"""Normal scores u of numbers x = T(u), where T is increasing and linear between knots.

    .. math:: \log p(u) = \log N(u; \mu, \sigma^2), \quad
        \log p(u) = \log \frac{\Phi(\frac{b - \mu}{\sigma}) - \Phi(\frac{a - \mu}{\sigma})}{b - a}
        \;\text{ on a step } (a, b)

    Where the scores of knots are those of quantiles, N(0, 1) gives the numbers their own distribution, whatever shape
    it has. A value that occurs often is a step: an interval (a, b) of scores whose probability is that of the value.

    Args:
        loc: Mean of the scores, (..., d).
        log_scale: Logarithm of their standard deviation, (..., d).
        scores: Of each variable, the scores of the knots.
        edges: The numbers there.
        steps: Of each variable, the segments that are steps: k for the one that begins at the k-th knot, from 1 on.
        validate_args: As in numpyro.

    Example:
        >>> scores, edges = ((-1.0, 0.0, 2.0),), ((0.0, 1.0, 5.0),)
        >>> p = QuantileNormal(jnp.zeros(1), jnp.zeros(1), scores, edges, steps=((2,),))
        >>> print(f"{2 * jnp.exp(p.log_prob(jnp.array([0.3])))[0]:.4f}")  # the probability of (0, 2)
        0.4772
        >>> print(f"{p.expectation[0]:.3f}")
        1.390
    """

    pytree_aux_fields = ("scores", "edges", "steps")

    def __init__(
        self, loc: Any, log_scale: Any, scores: Edges, edges: Edges, steps: tuple, *, validate_args: bool | None = None
    ):
        self.scores, self.edges, self.steps = scores, edges, steps
        super().__init__(loc, log_scale, validate_args=validate_args)

    @property
    def to_numbers(self) -> PiecewiseLinear:
        """T, from scores to numbers."""
        return PiecewiseLinear(self.scores, self.edges)

    def log_prob(self, value: Any) -> Array:
        """Return the log densities of scores (..., d)."""
        density = super().log_prob(value)
        steps = _steps_of(self.scores, self.steps)
        if not steps.lower.size:
            return density
        loc = jnp.asarray(self.loc)
        lower, upper = (jnp.asarray(ends, loc.dtype) for ends in steps)  # (d, S)
        value = jnp.asarray(value)[..., None]
        is_here = (value > lower) & (value < upper)
        on_step = jnp.any(is_here, axis=-1)
        a, b = (
            jnp.where(on_step, jnp.sum(jnp.where(is_here, ends, 0), axis=-1), default)
            for ends, default in ((lower, -1.0), (upper, 1.0))
        )
        inverse = jnp.exp(-self.log_scale)
        mass = log_interval((a - loc) * inverse, (b - loc) * inverse)
        return jnp.where(on_step, mass - jnp.log(b - a), density)

    @property
    def expectation(self) -> Array:
        """The means of the numbers, (..., d), in the unit of the edges."""
        return self._moments[0]

    @property
    def mean(self) -> Array:
        """The scores of the means."""
        return jnp.asarray(self.to_numbers.inv(self.expectation))

    @property
    def variance(self) -> Array:
        """The variances of the numbers, in the unit of the edges."""
        first, second = self._moments
        return jnp.maximum(second - first**2, 0)

    @property
    def _moments(self):
        """E[T(u)] and E[T(u)²]: on each segment, T is linear in a normal variable between two ends."""
        segments = segments_of(self.scores, self.edges)
        mu, sigma = jnp.asarray(self.loc)[..., None], jnp.asarray(self.scale)[..., None]
        starts, origins, values, slopes = (jnp.asarray(part, mu.dtype) for part in segments)
        ends = jnp.clip((starts - mu) / sigma, -FAR, FAR)  # (..., d, L), in standard deviations
        below = jnp.concatenate([ndtr(ends), jnp.ones_like(ends[..., :1])], axis=-1)
        heights = norm.pdf(ends)
        at_ends = jnp.where(heights > 0, ends * heights, 0)
        heights, at_ends = (
            jnp.concatenate([part, jnp.zeros_like(part[..., :1])], axis=-1) for part in (heights, at_ends)
        )
        share = jnp.diff(below, axis=-1)
        first = -jnp.diff(heights, axis=-1)  # E[t; on the segment], t = (u - mu) / sigma
        second = share - jnp.diff(at_ends, axis=-1)
        middle, width = values + slopes * (mu - origins), slopes * sigma
        mean = jnp.sum(middle * share + width * first, axis=-1)
        square = jnp.sum(middle**2 * share + 2 * middle * width * first + width**2 * second, axis=-1)
        return mean, square


def log_interval(a: Array, b: Array) -> Array:
    r"""Return :math:`\log(\Phi(b) - \Phi(a))`, a < b, to full relative precision in both tails.

    Example:
        >>> print(f"{log_interval(jnp.float32(20.0), jnp.float32(21.0)):.3f}")
        -203.917
    """
    a, b = jnp.where(a > 0, -b, a), jnp.where(a > 0, -a, b)  # by symmetry: to the lower tail, where log_ndtr is exact
    is_narrow = b - a < NARROW
    wide = jnp.where(is_narrow, a + 1, b)
    log_below, log_above = log_ndtr(a), log_ndtr(wide)
    of_wide = log_above + jnp.log(-jnp.expm1(log_below - log_above))
    middle = (a + b) / 2
    of_narrow = norm.logpdf(middle) + jnp.log(jnp.where(is_narrow, b - a, 1))
    return jnp.where(is_narrow, of_narrow, of_wide)


class _Steps(NamedTuple):
    lower: np.ndarray  # (d, S), padded by empty intervals
    upper: np.ndarray


@lru_cache(maxsize=64)
def _steps_of(scores, steps):
    S = max(map(len, steps), default=0)
    lower, upper = np.zeros((len(scores), S)), np.zeros((len(scores), S))
    for row, (of, numbers) in enumerate(zip(scores, steps, strict=True)):
        lower[row, : len(numbers)] = [of[number - 1] for number in numbers]
        upper[row, : len(numbers)] = [of[number] for number in numbers]
    return _Steps(lower, upper)
