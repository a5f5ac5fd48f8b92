"""A Poisson distribution parameterized by the logarithm of its rate."""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from numpyro.distributions import constraints

from aevb.distributions.log_scale_normal import exp_minus_line

MAX_RATE = 1e9  # of draws, which JAX makes as 32-bit integers
FROM_SERIES = 8.0  # where Stirling's series is used


class LogRatePoisson(dist.Distribution):
    r"""Counts with the rate exp(log_rate), for networks that output the logarithm.

    .. math:: \log p(x) = -x \left(e^t - 1 - t\right) - s(x), \quad t = \log \lambda - \log x

    with s from :func:`stirling_excess`. The terms of the usual formula are of the size of x log x and cancel: at a
    count of a million they leave an error of about a nat in float32. Here no large terms cancel (Loader, "Fast and
    accurate computation of binomial probabilities", 2000).

    Args:
        log_rate: Logarithm of the rate.
        validate_args: As in numpyro.

    Example:
        >>> p = LogRatePoisson(jnp.log(1e6))
        >>> print(f"{p.log_prob(1e6):.3f}")
        -7.827
    """

    arg_constraints = {"log_rate": constraints.real}
    support: Any = constraints.nonnegative_integer

    def __init__(self, log_rate: Any = 0.0, *, validate_args: bool | None = None):
        self.log_rate = jnp.asarray(log_rate)
        super().__init__(jnp.shape(log_rate), validate_args=validate_args)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw counts, as 32-bit integers."""
        return jax.random.poisson(key, jnp.minimum(self.mean, MAX_RATE), (*sample_shape, *self.batch_shape))

    def log_prob(self, value: Any, intermediates: Any = None) -> Array:
        """Return the log probability of counts of any number type."""
        x = jnp.asarray(value, self.log_rate.dtype)
        positive = jnp.where(x > 0, x, 1)
        deviance = positive * exp_minus_line(self.log_rate - jnp.log(positive))
        return -jnp.where(x > 0, deviance, self.mean) - stirling_excess(x)

    @property
    def mean(self) -> Array:
        """The rate."""
        return jnp.exp(self.log_rate)

    @property
    def variance(self) -> Array:
        """The rate."""
        return self.mean

    @property
    def mode(self) -> Array:
        """The largest whole number that is not above the rate."""
        return jnp.floor(self.mean)


def stirling_excess(y: Array) -> Array:
    r"""Return :math:`\log \Gamma(y + 1) - (y \log y - y)` for y >= 0, without cancellation where y is large.

    It is half of log(2 pi y) plus Stirling's series.

    Example:
        >>> print(f"{stirling_excess(jnp.float32(1e6)):.6f}")
        7.826694
    """
    is_small = y < FROM_SERIES
    small, large = jnp.maximum(jnp.where(is_small, y, 1), 1e-30), jnp.where(is_small, FROM_SERIES, y)
    direct = jax.lax.lgamma(small + 1) - small * jnp.log(small) + small
    inverse = 1 / large
    series = inverse * (1 / 12 - inverse**2 * (1 / 360 - inverse**2 / 1260))
    return jnp.where(is_small, direct, jnp.log(2 * jnp.pi * large) / 2 + series)
