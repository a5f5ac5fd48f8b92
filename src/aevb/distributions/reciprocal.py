"""The reciprocal (log-uniform) distribution: a density proportional to 1/z on an interval."""

from typing import Any

import jax.numpy as jnp
from jax import Array
from numpyro.distributions import constraints
from numpyro.distributions.util import validate_sample

from aevb.distributions._quantile_distribution import BoundedDistribution, promote_parameters


class Reciprocal(BoundedDistribution):
    r"""Reciprocal distribution.

    .. math:: q(z) = \frac{1}{z \log(b / a)}, \qquad a \le z \le b

    numpyro calls it ``LogUniform``; this is the paper's name.

    Args:
        low: :math:`a > 0`.
        high: :math:`b > a`.

    Example:
        >>> from aevb.distributions import Reciprocal
        >>> print(f"{Reciprocal(1.0, 100.0).icdf(0.5):.1f}")
        10.0

    Paper: §2.4.
    """

    arg_constraints = {"low": constraints.positive, "high": constraints.positive}
    reparametrized_params = ["low", "high"]

    def __init__(self, low: Any, high: Any, *, validate_args: bool | None = None):
        (self.low, self.high), batch_shape = promote_parameters(low, high)
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def _log_ratio(self):
        return jnp.log(self.high / self.low)

    @validate_sample
    def log_prob(self, value: Array) -> Array:
        return -jnp.log(value) - jnp.log(self._log_ratio)

    def cdf(self, value: Array) -> Array:
        return jnp.log(jnp.clip(value, self.low, self.high) / self.low) / self._log_ratio

    def icdf(self, q: Array) -> Array:
        return self.low * jnp.exp(q * self._log_ratio)

    @property
    def mean(self) -> Array:
        return (self.high - self.low) / self._log_ratio

    @property
    def variance(self) -> Array:
        return (self.high**2 - self.low**2) / (2 * self._log_ratio) - self.mean**2
