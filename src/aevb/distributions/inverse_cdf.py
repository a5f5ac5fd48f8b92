"""Approach 1: a tractable inverse CDF. epsilon ~ U(0, 1) and g_phi is the inverse CDF of q.

Each function below is the inverse CDF F^-1(u) of one family, written so that both tails are accurate in float32.

Paper: §2.4.
"""

import jax.numpy as jnp
import numpyro.distributions as dist

from aevb.distributions._representable import open_unit_interval, positive
from aevb.distributions.erlang import Erlang
from aevb.distributions.rayleigh import Rayleigh
from aevb.distributions.reciprocal import Reciprocal
from aevb.distributions.reparameterization import register, uniform_noise


def inverse_cdf(*families):
    """Register a function (q, u) as the inverse CDF of these families."""

    def decorate(function):
        def transform(q, epsilon):
            return function(q, open_unit_interval(epsilon))

        for family in families:
            register(family, uniform_noise)(transform)
        return transform

    return decorate


@inverse_cdf(dist.Exponential)
def exponential(q, u):
    return -jnp.log1p(-u) / q.rate


@inverse_cdf(dist.Cauchy)
def cauchy(q, u):
    # tan(pi (u - 1/2)) from the nearer end: at u = 0 float32 rounds the angle past -pi/2 and the sign would flip.
    to_nearer_end = jnp.minimum(u, 1 - u)
    return q.loc + q.scale * jnp.sign(u - 0.5) / jnp.tan(jnp.pi * to_nearer_end)


@inverse_cdf(dist.Logistic)
def logistic(q, u):
    return q.loc + q.scale * (jnp.log(u) - jnp.log1p(-u))


@inverse_cdf(dist.Pareto)
def pareto(q, u):
    return q.scale * jnp.exp(-jnp.log1p(-u) / q.alpha)


@inverse_cdf(dist.Weibull)
def weibull(q, u):
    return positive(q.scale * jnp.exp(jnp.log(-jnp.log1p(-u)) / q.concentration))


@inverse_cdf(dist.LogUniform)  # numpyro's name for the reciprocal distribution
def log_uniform(q, u):
    return q.low * jnp.exp(u * jnp.log(q.high / q.low))


@inverse_cdf(dist.Gompertz)
def gompertz(q, u):
    return jnp.log1p(-jnp.log1p(-u) / q.concentration) / q.rate


@inverse_cdf(dist.Gumbel)
def gumbel(q, u):
    return q.loc - q.scale * jnp.log(-jnp.log(u))


@inverse_cdf(Rayleigh, Reciprocal, Erlang)
def quantile(q, u):
    return q.icdf(u)
