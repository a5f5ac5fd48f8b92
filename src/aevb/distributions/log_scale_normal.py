"""A Gaussian parameterized by the logarithm of its scale."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from numpyro.distributions import constraints


class LogScaleNormal(dist.Normal):
    r"""N(loc, exp(log_scale)²), for networks that output the logarithm.

    Converting to the scale and back loses precision: in float32 the logarithm of exp(5e-5) has a relative error of a
    thousandth, and so has a KL divergence from N(0, 1).

    Args:
        loc: Mean.
        log_scale: Logarithm of the standard deviation.
        validate_args: As in numpyro.

    Example:
        >>> q = LogScaleNormal(0.0, 0.0)
        >>> print(f"{q.log_prob(1.0):.4f}")
        -1.4189
    """

    arg_constraints = {"loc": constraints.real, "log_scale": constraints.real}

    def __init__(self, loc: Any = 0.0, log_scale: Any = 0.0, *, validate_args: bool | None = None):
        self.log_scale = jnp.broadcast_to(log_scale, jnp.broadcast_shapes(jnp.shape(loc), jnp.shape(log_scale)))
        super().__init__(loc, jnp.exp(log_scale), validate_args=validate_args)

    def log_prob(self, value: Any) -> Array:
        standardized = (jnp.asarray(value) - jnp.asarray(self.loc)) * jnp.exp(-self.log_scale)
        return -(standardized**2 + jnp.log(2 * jnp.pi)) / 2 - self.log_scale


@jax.custom_jvp
def exp_minus_line(v: Array) -> Array:
    """Return exp(v) - 1 - v to full precision, even near 0, where the terms cancel in float32.

    Example:
        >>> print(f"{exp_minus_line(jnp.float32(1e-4)):.4e}")
        5.0002e-09
    """
    small, series = jnp.clip(v, -0.5, 0.5), jnp.zeros_like(v)
    for n in range(11, 1, -1):
        series = series * small + 1 / math.factorial(n)
    return jnp.where(jnp.abs(v) < 0.5, small**2 * series, jnp.expm1(v) - v)


exp_minus_line.defjvps(lambda v_dot, _, v: v_dot * jnp.expm1(v))
