"""Approach 2: location-scale families. g(epsilon) = location + scale * epsilon, epsilon from the standard member.

Where the standard member still has a parameter (the degrees of freedom of Student's t, the mode of the triangular
distribution), that parameter is part of phi too; the standard variable is then drawn through its inverse CDF, so that
the noise has no parameters.

Paper: §2.4.
"""

import jax.numpy as jnp
import numpyro.distributions as dist
from jax.scipy.special import ndtr

from aevb.distributions._beta_quantile import beta_offset
from aevb.distributions._gamma_quantile import gamma_offset
from aevb.distributions._representable import open_unit_interval
from aevb.distributions.reparameterization import elementwise, register, uniform_noise
from aevb.distributions.triangular import Triangular


def standard_noise(family, *parameters):
    """Return a function of q that returns the noise, the standard member of the family."""
    return lambda q: elementwise(family(*parameters), q.batch_shape, q.event_shape)


def normal_noise(num_dimensions):
    """Return a function of q that returns the noise, N(0, I) with `num_dimensions(q)` dimensions."""
    return lambda q: elementwise(dist.Normal(0.0, 1.0), q.batch_shape, (num_dimensions(q),))


@register(dist.Normal, standard_noise(dist.Normal, 0.0, 1.0))
@register(dist.Laplace, standard_noise(dist.Laplace, 0.0, 1.0))
# The logistic, which is on both of the paper's lists, is in inverse_cdf.py: log u - log(1 - u) is its standard member.
def location_scale(q, epsilon):
    return q.loc + q.scale * epsilon


@register(dist.HalfNormal, standard_noise(dist.HalfNormal, 1.0))
@register(dist.HalfCauchy, standard_noise(dist.HalfCauchy, 1.0))
def scale_only(q, epsilon):
    return q.scale * epsilon


@register(dist.Uniform, uniform_noise)
def uniform(q, epsilon):
    return q.low + (q.high - q.low) * epsilon


@register(Triangular, uniform_noise)
def triangular(q, epsilon):
    return q.icdf(open_unit_interval(epsilon))


@register(dist.StudentT, uniform_noise)
def student_t(q, epsilon):
    # 1 / t^2 has an F distribution with df and 1 degrees of freedom; its CDF is the two-sided tail probability of t.
    u = open_unit_interval(epsilon)
    two_sided = 2 * jnp.minimum(u, 1 - u)
    return q.loc + q.scale * jnp.sign(u - 0.5) * jnp.exp(-beta_offset(q.df / 2, 0.5, two_sided) / 2)


# Elliptical distributions: a linear map of a spherical variable.


@register(dist.MultivariateNormal, normal_noise(lambda q: q.event_shape[0]))
def multivariate_normal(q, epsilon):
    return q.loc + matrix_times_vector(q.scale_tril, epsilon)


@register(dist.LowRankMultivariateNormal, normal_noise(lambda q: sum(q.cov_factor.shape[-2:])))
def low_rank_multivariate_normal(q, epsilon):
    shared, own = jnp.split(epsilon, [q.cov_factor.shape[-1]], axis=-1)
    return q.loc + matrix_times_vector(q.cov_factor, shared) + jnp.sqrt(q.cov_diag) * own


@register(dist.MultivariateStudentT, normal_noise(lambda q: q.event_shape[0] + 1))
def multivariate_student_t(q, epsilon):
    # A Gaussian direction scaled by sqrt(df / chi2), with the chi-squared variable from the last coordinate.
    direction, last = epsilon[..., :-1], epsilon[..., -1:]
    df = jnp.expand_dims(q.df, -1)
    stretch = jnp.exp(-gamma_offset(df / 2, ndtr(last)) / 2)
    return q.loc + matrix_times_vector(q.scale_tril, stretch * direction)


def matrix_times_vector(matrix, vector):
    return jnp.einsum("...ij,...j->...i", matrix, vector)
