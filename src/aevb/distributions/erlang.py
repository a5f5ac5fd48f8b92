"""The Erlang distribution: the sum of an integer number of exponential waiting times."""

from typing import Any

import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.special import gammainc, gammaln
from numpyro.distributions import constraints
from numpyro.distributions.util import validate_sample

from aevb.distributions._gamma_quantile import log_gamma_quantile
from aevb.distributions._quantile_distribution import QuantileDistribution, promote_parameters


class Erlang(QuantileDistribution):
    r"""Erlang distribution, a gamma distribution whose shape is an integer.

    .. math:: q(z) = \frac{\lambda^k z^{k-1} e^{-\lambda z}}{(k - 1)!}, \qquad z > 0

    Only the rate has a gradient; the shape is a count.

    Args:
        shape: :math:`k`, a positive integer. It is stored as the attribute ``concentration``, because ``shape`` is a
            method of every numpyro distribution.
        rate: :math:`\lambda`.

    Example:
        >>> from aevb.distributions import Erlang
        >>> print(Erlang(3, 2.0).mean)
        1.5

    Paper: §2.4.
    """

    arg_constraints = {"concentration": constraints.positive_integer, "rate": constraints.positive}
    support = constraints.positive
    reparametrized_params = ["rate"]

    def __init__(self, shape: Any, rate: Any = 1.0, *, validate_args: bool | None = None):
        (self.concentration, self.rate), batch_shape = promote_parameters(shape, rate)
        super().__init__(batch_shape, validate_args=validate_args)

    @validate_sample
    def log_prob(self, value: Array) -> Array:
        k, scaled = self.concentration, self.rate * value
        return (k - 1) * jnp.log(scaled) - scaled + jnp.log(self.rate) - gammaln(k)

    def cdf(self, value: Array) -> Array:
        return gammainc(self.concentration, self.rate * jnp.maximum(value, 0))

    def icdf(self, q: Array) -> Array:
        k = lax.stop_gradient(self.concentration)
        return jnp.exp(log_gamma_quantile(k, q)) / self.rate

    @property
    def mean(self) -> Array:
        return self.concentration / self.rate

    @property
    def variance(self) -> Array:
        return self.concentration / self.rate**2
