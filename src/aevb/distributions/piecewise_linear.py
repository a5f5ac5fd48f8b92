"""Increasing functions that are linear between knots: from what a table stores to numbers in cells."""

from functools import lru_cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.distributions import constraints
from numpyro.distributions.transforms import Transform

from aevb.distributions.levels import FAR

Edges = tuple[tuple[float, ...], ...]  # of each variable, in increasing order


class PiecewiseLinear(Transform):
    """An increasing function of each variable: linear between knots, and with slope 1 beyond the first and last one.

    Args:
        knots: Of each of d variables, two or more.
        values: The values there, in increasing order.

    Example:
        >>> T = PiecewiseLinear(((0.0, 1.0, 2.0),), ((0.0, 1.0, 5.0),))
        >>> T(jnp.array([[1.25], [-2.0], [3.0]])).tolist()
        [[2.0], [-2.0], [6.0]]
        >>> T.inv(jnp.array([[2.0]])).tolist()
        [[1.25]]
    """

    domain: Any = constraints.real
    codomain: Any = constraints.real

    def __init__(self, knots: Edges, values: Edges):
        self.knots, self.values = knots, values

    def __call__(self, x: Any) -> Array:
        """Return the values at x (..., d)."""
        return _interpolated(x, segments_of(self.knots, self.values))

    def _inverse(self, y):
        return _interpolated(y, segments_of(self.values, self.knots))

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Array:
        """Return the log slopes at x; y is not used."""
        segments = segments_of(self.knots, self.values)
        return _at(x, segments, np.log(segments.slopes))[0]

    def tree_flatten(self) -> Any:
        """Return the parts, as numpyro does: none is an array."""
        return (), ((), {"knots": self.knots, "values": self.values})


class Segments(NamedTuple):
    """The linear pieces of d functions, (d, L): the one below the first knot, those between, the one above, padding.

    On a segment the function is ``values + slopes (x - origins)``.
    """

    starts: np.ndarray  # where each begins, minus infinity for the first; padding begins far out
    origins: np.ndarray
    values: np.ndarray
    slopes: np.ndarray


@lru_cache(maxsize=256)
def segments_of(knots: Edges, values: Edges) -> Segments:
    """Return the segments of :class:`PiecewiseLinear`."""
    L = max(map(len, knots)) + 1
    starts, slopes = np.full((len(knots), L), FAR), np.ones((len(knots), L))
    origins, there = np.zeros((len(knots), L)), np.zeros((len(knots), L))
    for row, (x, y) in enumerate(zip(knots, values, strict=True)):
        K = len(x)
        starts[row, : K + 1] = [-np.inf, *x]
        origins[row, : K + 1], there[row, : K + 1] = [x[0], *x], [y[0], *y]
        slopes[row, 1:K] = np.diff(y) / np.diff(x)
    return Segments(starts, origins, there, slopes)


def _interpolated(x, segments):
    origin, value, slope = _at(x, segments, segments.origins, segments.values, segments.slopes)
    return value + slope * (x - origin)


def _at(x, segments, *arrays):
    """Return the entries of arrays (d, L) for the segments in which x (..., d) is.

    A sum over all segments instead of a look-up, whose gradient XLA computes row by row on a CPU.
    """
    dtype = jnp.result_type(float)
    number = jnp.sum(x[..., None] >= jnp.asarray(segments.starts[:, 1:], dtype), axis=-1)
    is_here = number[..., None] == jnp.arange(segments.starts.shape[-1])
    return [jnp.sum(jnp.where(is_here, jnp.asarray(array, dtype), 0), axis=-1) for array in arrays]
