"""Approach 3: composition. A variable expressed through others that are already reparameterized.

The paper makes a gamma variable from a sum of exponential ones, which needs an integer shape, and Beta, Chi-squared and
F variables from several gammas. Here a gamma or a beta variable comes from a single uniform one, through its quantile
function: any shape is allowed, and the gradient of a draw is the conditional expectation, given z, of the gradient with
several noise variables, so its variance is the smallest.

Paper: §2.4.
"""

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax.tree_util import Partial

from aevb.distributions._beta_quantile import logit_beta_quantile
from aevb.distributions._gamma_quantile import log_gamma_quantile
from aevb.distributions._representable import open_unit_interval, positive
from aevb.distributions.fisher_snedecor import FisherSnedecor
from aevb.distributions.reparameterization import (
    Reparameterization,
    register,
    reparameterize,
    uniform_noise,
)


@register(dist.Gamma, uniform_noise)
@register(dist.Chi2, uniform_noise)  # a gamma with shape df/2 and rate 1/2
def gamma(q, epsilon):
    return positive(jnp.exp(log_gamma_quantile(q.concentration, epsilon)) / q.rate)


@register(dist.Beta, uniform_noise)
def beta(q, epsilon):
    z = jax.nn.sigmoid(logit_beta_quantile(q.concentration1, q.concentration0, epsilon))
    return open_unit_interval(z)


@register(dist.Dirichlet, uniform_noise)
def dirichlet(q, epsilon):
    # Gamma variates divided by their sum, as logarithms because at small concentrations all of them underflow.
    z = jax.nn.softmax(log_gamma_quantile(q.concentration, epsilon), axis=-1)
    return open_unit_interval(z)


@register(FisherSnedecor, uniform_noise)
def fisher_snedecor(q, epsilon):
    return positive(q.icdf(epsilon))  # the odds of a beta variate divided by those of its mean


# Wrapped distributions follow from their parts; LogNormal, the exponential of a Gaussian, is one of these.


@reparameterize.register
def transformed(q: dist.TransformedDistribution) -> Reparameterization:
    noise, transform = reparameterize(q.base_dist)
    return Reparameterization(noise, Partial(_push_forward, transform, q.transforms))


def _push_forward(transform, further_transforms, epsilon):
    z = transform(epsilon)
    for further_transform in further_transforms:
        z = further_transform(z)
    return z


@reparameterize.register
def independent(q: dist.Independent) -> Reparameterization:
    noise, transform = reparameterize(q.base_dist)
    return Reparameterization(noise.to_event(q.reinterpreted_batch_ndims), transform)


@reparameterize.register
def expanded(q: dist.ExpandedDistribution) -> Reparameterization:
    noise, transform = reparameterize(q.base_dist)
    return Reparameterization(noise.expand(q.batch_shape), transform)


@reparameterize.register
def masked(q: dist.MaskedDistribution) -> Reparameterization:
    return reparameterize(q.base_dist)  # a mask changes the density, not the draws
