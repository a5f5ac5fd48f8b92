"""The Rayleigh distribution: the length of a two-dimensional Gaussian vector."""

from typing import Any

import jax.numpy as jnp
from jax import Array
from numpyro.distributions import constraints
from numpyro.distributions.util import validate_sample

from aevb.distributions._quantile_distribution import QuantileDistribution


class Rayleigh(QuantileDistribution):
    r"""Rayleigh distribution.

    .. math:: q(z) = \frac{z}{\sigma^2} e^{-z^2 / 2 \sigma^2}, \qquad z > 0

    Args:
        scale: :math:`\sigma`, the mode.

    Example:
        >>> from aevb.distributions import Rayleigh
        >>> print(f"{Rayleigh(2.0).mean:.4f}")
        2.5066

    Paper: §2.4.
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.positive
    reparametrized_params = ["scale"]

    def __init__(self, scale: Any = 1.0, *, validate_args: bool | None = None):
        self.scale = scale
        super().__init__(jnp.shape(scale), validate_args=validate_args)

    @validate_sample
    def log_prob(self, value: Array) -> Array:
        standard = value / self.scale
        return jnp.log(standard / self.scale) - standard**2 / 2

    def cdf(self, value: Array) -> Array:
        return -jnp.expm1(-((jnp.maximum(value, 0) / self.scale) ** 2) / 2)

    def icdf(self, q: Array) -> Array:
        return self.scale * jnp.sqrt(-2 * jnp.log1p(-q))

    @property
    def mean(self) -> Array:
        return self.scale * jnp.sqrt(jnp.pi / 2)

    @property
    def variance(self) -> Array:
        return self.scale**2 * (2 - jnp.pi / 2)
