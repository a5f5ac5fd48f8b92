"""The triangular distribution on an interval."""

from typing import Any

import jax.numpy as jnp
from jax import Array
from numpyro.distributions import constraints
from numpyro.distributions.util import validate_sample

from aevb.distributions._quantile_distribution import BoundedDistribution, promote_parameters


class Triangular(BoundedDistribution):
    r"""Triangular distribution: the density rises linearly from ``low`` to ``mode`` and falls linearly to ``high``.

    .. math::
        q(z) = \frac{2}{b - a} \min\left(\frac{z - a}{c - a}, \frac{b - z}{b - c}\right), \qquad a \le z \le b

    Args:
        low: :math:`a`.
        mode: :math:`c`, with :math:`a \le c \le b`.
        high: :math:`b > a`.

    Example:
        >>> from aevb.distributions import Triangular
        >>> print(f"{Triangular(0.0, 1.0, 2.0).icdf(0.125):.1f}")
        0.5

    Paper: §2.4.
    """

    arg_constraints = {"low": constraints.real, "mode": constraints.real, "high": constraints.real}
    reparametrized_params = ["low", "mode", "high"]
    mode: Any = None  # a parameter of this family; overrides numpyro's read-only property of that name

    def __init__(self, low: Any, mode: Any, high: Any, *, validate_args: bool | None = None):
        (self.low, self.mode, self.high), batch_shape = promote_parameters(low, mode, high)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def _width(self):
        return self.high - self.low

    @property
    def _standard_mode(self):
        return (self.mode - self.low) / self._width

    @validate_sample
    def log_prob(self, value: Array) -> Array:
        rising = value < self.mode
        distance = jnp.where(rising, value - self.low, self.high - value)
        base = jnp.where(rising, self.mode - self.low, self.high - self.mode)
        # At the mode the height is 2 / width, even when it is an end of the interval and its base has length zero.
        height = jnp.where(value == self.mode, 1, distance / jnp.where(base > 0, base, 1))
        return jnp.log(2 * height) - jnp.log(self._width)

    def cdf(self, value: Array) -> Array:
        c = self._standard_mode
        z = jnp.clip((value - self.low) / self._width, 0, 1)
        lower = z <= c
        below = z**2 / jnp.where(lower & (c > 0), c, 1)
        above = 1 - (1 - z) ** 2 / jnp.where(lower, 1, 1 - c)
        return jnp.where(lower, below, above)

    def icdf(self, q: Array) -> Array:
        c = self._standard_mode
        lower = q < c
        # The branch not taken gets a harmless c: the square root has no derivative at zero.
        below = jnp.sqrt(q) * jnp.sqrt(jnp.where(lower, c, 1))
        above = 1 - jnp.sqrt(1 - q) * jnp.sqrt(jnp.where(lower, 1, 1 - c))
        return self.low + self._width * jnp.where(lower, below, above)

    @property
    def mean(self) -> Array:
        return (self.low + self.mode + self.high) / 3

    @property
    def variance(self) -> Array:
        c = self._standard_mode
        return self._width**2 * (1 - c + c**2) / 18
