"""The triangular distribution on an interval."""

import jax.numpy as jnp
from jax import lax
from numpyro.distributions import constraints
from numpyro.distributions.util import promote_shapes, validate_sample

from aevb.distributions._quantile_distribution import QuantileDistribution


class Triangular(QuantileDistribution):
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
    mode = None  # a parameter of this family: makes numpyro's read-only property of that name settable

    def __init__(self, low, mode, high, *, validate_args=None):
        self.low, self.mode, self.high = promote_shapes(low, mode, high)
        batch_shape = lax.broadcast_shapes(jnp.shape(low), jnp.shape(mode), jnp.shape(high))
        super().__init__(batch_shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.low, self.high)

    @property
    def _width(self):
        return self.high - self.low

    @property
    def _standard_mode(self):
        return (self.mode - self.low) / self._width

    @validate_sample
    def log_prob(self, value):
        rising = value < self.mode
        distance = jnp.where(rising, value - self.low, self.high - value)
        base = jnp.where(rising, self.mode - self.low, self.high - self.mode)
        return jnp.log(2 * distance / base) - jnp.log(self._width)

    def cdf(self, value):
        c = self._standard_mode
        z = jnp.clip((value - self.low) / self._width, 0, 1)
        lower = z < c
        below = z**2 / jnp.where(lower, c, 1)
        above = 1 - (1 - z) ** 2 / jnp.where(lower, 1, 1 - c)
        return jnp.where(lower, below, above)

    def icdf(self, q):
        c = self._standard_mode
        lower = q < c
        # The branch not taken gets a harmless c: the square root has no derivative at zero.
        below = jnp.sqrt(q) * jnp.sqrt(jnp.where(lower, c, 1))
        above = 1 - jnp.sqrt(1 - q) * jnp.sqrt(jnp.where(lower, 1, 1 - c))
        return self.low + self._width * jnp.where(lower, below, above)

    @property
    def mean(self):
        return (self.low + self.mode + self.high) / 3

    @property
    def variance(self):
        c = self._standard_mode
        return self._width**2 * (1 - c + c**2) / 18
