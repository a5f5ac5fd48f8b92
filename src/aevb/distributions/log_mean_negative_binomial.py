"""A negative binomial distribution parameterized by the logarithms of its mean and its concentration."""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from jax.nn import softplus
from numpyro.distributions import constraints

from aevb.distributions.log_rate_poisson import MAX_RATE, stirling_excess


class LogMeanNegativeBinomial(dist.Distribution):
    r"""Counts with mean m and variance m + m²/r, for networks that output log m.

    .. math:: \log p(x) = -x \log \frac{1 + r/m}{1 + r/x} - r \log \frac{1 + m/r}{1 + x/r} - \log(1 + x/r)
        + s(x + r) - s(x) - s(r)

    with s from :func:`~aevb.distributions.log_rate_poisson.stirling_excess`. It is the usual formula without its terms
    of the size of x log x, which cancel. With a large concentration r it is nearly a Poisson distribution.

    Args:
        log_mean: Logarithm of m.
        log_concentration: Logarithm of r.
        validate_args: As in numpyro.

    Example:
        >>> p = LogMeanNegativeBinomial(jnp.log(3.0), 0.0)  # with r = 1 a geometric distribution
        >>> print(f"{jnp.exp(p.log_prob(1)):.4f}")
        0.1875
    """

    arg_constraints = {"log_mean": constraints.real, "log_concentration": constraints.real}
    support: Any = constraints.nonnegative_integer

    def __init__(self, log_mean: Any = 0.0, log_concentration: Any = 0.0, *, validate_args: bool | None = None):
        self.log_mean, self.log_concentration = jnp.asarray(log_mean), jnp.asarray(log_concentration)
        shape = jnp.broadcast_shapes(jnp.shape(log_mean), jnp.shape(log_concentration))
        super().__init__(shape, validate_args=validate_args)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw counts, as 32-bit integers: those of a Poisson distribution whose rate has a gamma distribution."""
        key_rate, key_count = jax.random.split(key)
        r = jnp.exp(self.log_concentration)
        # Logarithms: with a small concentration most rates would underflow.
        log_gamma = jax.random.loggamma(key_rate, r, (*sample_shape, *self.batch_shape))
        rate = jnp.exp(self.log_mean - self.log_concentration + log_gamma)
        return jax.random.poisson(key_count, jnp.minimum(rate, MAX_RATE))

    def log_prob(self, value: Any, intermediates: Any = None) -> Array:
        """Return the log probability of counts of any number type."""
        x = jnp.asarray(value, self.log_mean.dtype)
        r, to_mean = jnp.exp(self.log_concentration), self.log_mean - self.log_concentration
        to_count = jnp.log(jnp.where(x > 0, x, 1)) - self.log_concentration
        log1p_ratio = jnp.where(x > 0, softplus(to_count), 0)  # log(1 + x/r)
        deviance = x * (softplus(-to_mean) - softplus(-to_count)) + r * (softplus(to_mean) - log1p_ratio)
        return -deviance - log1p_ratio + stirling_excess(x + r) - stirling_excess(x) - stirling_excess(r)

    @property
    def mean(self) -> Array:
        """The mean m."""
        return jnp.broadcast_to(jnp.exp(self.log_mean), self.batch_shape)

    @property
    def variance(self) -> Array:
        """The variance m + m²/r."""
        return self.mean * (1 + jnp.exp(self.log_mean - self.log_concentration))

    @property
    def mode(self) -> Array:
        """The largest whole number that is not above m (r - 1) / r, or zero."""
        return jnp.floor(self.mean * jnp.maximum(1 - jnp.exp(-self.log_concentration), 0))
