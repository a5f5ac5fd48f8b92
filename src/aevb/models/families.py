"""Families of distributions by name: the registry from which encoders and decoders are built.

A family defines its parameters, their domains, and how they form a distribution. To add one, for p(x|z) or q(z|x), add
an entry to ``FAMILIES``, for p(x|z) with a ``Likelihood``. The interactive page refuses a likelihood that it cannot
decode, see ``PAGE_LIKELIHOODS``. The networks that compute the parameters are in another
registry, :data:`aevb.networks.NETWORKS`.

Paper: §2.1, §2.4, App. C.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array
from numpyro.distributions import transforms
from numpyro.distributions.util import vec_to_tril_matrix

from aevb.arrays import filled
from aevb.distributions import (
    DiscretizedLogistics,
    Flow,
    LogMeanNegativeBinomial,
    LogRatePoisson,
    LogScaleNormal,
    WordCounts,
)
from aevb.distributions.flow import coupling_shapes
from aevb.models.domains import POSITIVE, REAL, TINY, above, between, limited, limited_rate

NUM_LAYERS, WIDTH = 4, 32  # of a flow
NUM_LOGISTICS = 5  # components of the distribution of a pixel
LOGISTIC_LOG_SCALE, MIN_LOG_SCALE = -2.0, 7.0  # at an output of zero, and minus the smallest one
NEAR_IDENTITY = 0.1  # factor for what mixes variables, so that they are nearly independent under an untrained q


class Parameter(NamedTuple):
    """One parameter of a family: its domain and its initial value.

    Args:
        to_domain: Map from all real numbers to the parameter's domain; a bijection if there is a `start`.
        start: The value at an output of zero; None for ``to_domain(0)``.
        size: Function from the number of variables to the parameter's size.
    """

    to_domain: Any
    start: float | None = None
    size: Callable[[int], int] = lambda num_variables: num_variables

    def at(self, outputs: Array) -> Array:
        """Return the value for real numbers (..., size)."""
        if self.start is not None:
            outputs = outputs + jnp.asarray(self.to_domain.inv(jnp.full(outputs.shape[-1], self.start)))
        return self.to_domain(outputs)


class Likelihood(NamedTuple):
    """What a family requires of the data when used as p(x|z)."""

    unit_interval: bool  # whether x lies in [0, 1]
    density: bool  # whether it is a density, which is unbounded if a column is constant
    standardize: bool = False  # for location-scale families: whether the networks see columns of mean 0 and variance 1
    levels: bool = False  # whether x are 256 levels, k/255, whose bound is also given in bits per dimension
    counts: bool = False  # whether x are counts, whose decoder is linear around their means; see `TopicDecoder`

    @property
    def needs_units(self) -> bool:
        """Whether models are built from the columns' means."""
        return self.standardize or self.counts


def standard_normal(latent_dim: int) -> dist.Distribution:
    """Return the prior N(0, I)."""
    return dist.Normal(filled(latent_dim, 0), filled(latent_dim, 1), validate_args=False).to_event(1)


def standard_exponential(latent_dim: int) -> dist.Distribution:
    """Return a gamma prior with shape and rate 1: KL(Weibull || gamma) is known, but not from the equal Weibull."""
    return dist.Gamma(filled(latent_dim, 1), filled(latent_dim, 1), validate_args=False).to_event(1)


@dataclass(frozen=True)
class Family:
    """A family: its parameters, how they form a distribution, and what it can be used for.

    Args:
        parameters: The parameters by name, in the order of the network's outputs.
        distribution: Function from the parameters, by name, to a distribution over one vector.
        shared: Function from the number of variables to further arguments of `distribution`: arrays of zeros, to be
            learned, that are the same for all conditions.
        likelihood: Requirements on x if it can be used as p(x|z), by its name in ``VAE(likelihood=...)``; else None.
        for_latents: Whether it can be used as q(z|x), by its name in ``VAE(posterior=...)``.
        own_prior: Function from the number of variables to the matching p(z); None for the family's initial member.
    """

    parameters: Mapping[str, Parameter]
    distribution: Callable[..., dist.Distribution]
    shared: Callable[[int], dict] = lambda _: {}
    likelihood: Likelihood | None = None
    for_latents: bool = True
    own_prior: Callable[[int], dist.Distribution] | None = None

    def num_outputs(self, num_variables: int) -> int:
        """Return the number of network outputs for a distribution over this many variables."""
        return sum(parameter.size(num_variables) for parameter in self.parameters.values())

    def at(self, outputs: Array, num_variables: int, **shared) -> dist.Distribution:
        """Return the distribution for outputs (..., num_outputs); zeros give the initial member."""
        ends = np.cumsum([parameter.size(num_variables) for parameter in self.parameters.values()])
        pieces = jnp.split(outputs, ends[:-1], axis=-1) if len(ends) > 1 else [outputs]
        values = {
            name: parameter.at(piece) for (name, parameter), piece in zip(self.parameters.items(), pieces, strict=True)
        }
        return self.distribution(**values, **shared)

    def prior(self, num_variables: int) -> dist.Distribution:
        """Return the p(z) that matches a q(z|x) of this family."""
        if self.own_prior is not None:
            return self.own_prior(num_variables)
        return self.at(jnp.zeros(self.num_outputs(num_variables)), num_variables)


def _independent(family, **parameters):
    """Return a family of independent variables, all with the same distribution family."""
    return Family(
        {name: Parameter(*facts) for name, facts in parameters.items()},
        lambda **values: family(**values, validate_args=False).to_event(1),
    )


def _bernoulli(logits):
    # Logits: probabilities in float32 would cap the loss of a pixel at 16 nats.
    return dist.BernoulliLogits(logits, validate_args=False).to_event(1)


def _gaussian(loc, log_variance):
    return LogScaleNormal(loc, log_variance / 2, validate_args=False).to_event(1)


def _logistics(logits, loc, log_scale):
    """Return levels of pixels; at an output of zero the components have equal weights and are spread from 0 to 1."""
    logits, loc, log_scale = (x.reshape(*x.shape[:-1], NUM_LOGISTICS, -1) for x in (logits, loc, log_scale))
    loc = loc / 2 + ((jnp.arange(NUM_LOGISTICS) + 0.5) / NUM_LOGISTICS)[:, None]
    log_scale = limited(log_scale + LOGISTIC_LOG_SCALE, MIN_LOG_SCALE)
    return DiscretizedLogistics(logits, loc, log_scale, validate_args=False).to_event(1)


def _poisson(log_rate):
    return LogRatePoisson(log_rate, validate_args=False).to_event(1)


def _negative_binomial(log_mean, log_concentration):
    return LogMeanNegativeBinomial(log_mean, limited(log_concentration), validate_args=False).to_event(1)


def _multinomial(logits):
    return WordCounts(logits, validate_args=False)


def _full_gaussian(loc, scale, mixing):
    """Return a Gaussian with Cholesky factor diag(scale) (I + mixing); entries below the diagonal start small."""
    below = vec_to_tril_matrix(NEAR_IDENTITY * mixing, diagonal=-1)
    scale_tril = scale[..., None] * (jnp.eye(loc.shape[-1]) + below)
    return dist.MultivariateNormal(loc, scale_tril=scale_tril, validate_args=False)


def _flow(loc, scale, contexts, layers):
    """Return a flow whose layers depend on x through the biases of their hidden units."""
    contexts = jnp.split(contexts, len(layers), axis=-1)
    layers = [
        {**layer, "bias_in": layer["bias_in"] + context, "weight_out": NEAR_IDENTITY * layer["weight_out"]}
        for layer, context in zip(layers, contexts, strict=True)
    ]
    return Flow(loc, scale, layers, validate_args=False)


def _flow_layers(num_variables):
    shapes = coupling_shapes(num_variables, WIDTH)
    return {"layers": tuple({name: filled(shape, 0) for name, shape in shapes.items()} for _ in range(NUM_LAYERS))}


_LOC, _SCALE = (REAL,), (POSITIVE, 1.0)
_BY_COMPONENT = Parameter(REAL, size=lambda num_variables: NUM_LOGISTICS * num_variables)
FAMILIES = {
    "bernoulli": Family(
        {"logits": Parameter(REAL)},
        _bernoulli,
        likelihood=Likelihood(unit_interval=True, density=False),
        for_latents=False,
    ),
    "gaussian": Family(
        {"loc": Parameter(REAL), "log_variance": Parameter(limited)},
        _gaussian,
        likelihood=Likelihood(unit_interval=False, density=True, standardize=True),
        own_prior=standard_normal,
    ),
    "sigmoid-gaussian": Family(
        {"loc": Parameter(transforms.SigmoidTransform()), "log_variance": Parameter(limited)},
        _gaussian,
        likelihood=Likelihood(unit_interval=True, density=True),
        for_latents=False,
    ),
    "discretized-logistic": Family(
        dict.fromkeys(("logits", "loc", "log_scale"), _BY_COMPONENT),
        _logistics,
        likelihood=Likelihood(unit_interval=True, density=False, levels=True),
        for_latents=False,
    ),
    "multinomial": Family(
        {"logits": Parameter(REAL)},
        _multinomial,
        likelihood=Likelihood(unit_interval=False, density=False, counts=True),
        for_latents=False,
    ),
    # Counts, as columns of a table or in a model of one's own.
    "poisson": Family({"log_rate": Parameter(limited_rate)}, _poisson, for_latents=False),
    "negative-binomial": Family(
        {"log_mean": Parameter(limited_rate)},
        _negative_binomial,
        lambda num_variables: {"log_concentration": filled(num_variables, 0)},
        for_latents=False,
    ),
    "full-gaussian": Family(
        {
            "loc": Parameter(*_LOC),
            "scale": Parameter(*_SCALE),
            "mixing": Parameter(REAL, size=lambda num_variables: num_variables * (num_variables - 1) // 2),
        },
        _full_gaussian,
        own_prior=standard_normal,
    ),
    "flow": Family(
        {
            "loc": Parameter(*_LOC),
            "scale": Parameter(*_SCALE),
            "contexts": Parameter(REAL, size=lambda _: NUM_LAYERS * WIDTH),
        },
        _flow,
        _flow_layers,
        own_prior=standard_normal,
    ),
    "laplace": _independent(dist.Laplace, loc=_LOC, scale=_SCALE),
    "logistic": _independent(dist.Logistic, loc=_LOC, scale=_SCALE),
    "gumbel": _independent(dist.Gumbel, loc=_LOC, scale=_SCALE),
    # More than two degrees of freedom: with fewer the variance is infinite, and below one the mean does not exist.
    "student-t": _independent(dist.StudentT, df=(above(2.0), 5.0), loc=_LOC, scale=_SCALE),
    # The limits keep z within the range of float32.
    "lognormal": _independent(dist.LogNormal, loc=(between(-20.0, 20.0), 0.0), scale=(between(TINY, 4.0), 1.0)),
    "gamma": _independent(dist.Gamma, concentration=(POSITIVE, 1.0), rate=(POSITIVE, 1.0)),
    "weibull": replace(
        _independent(dist.Weibull, scale=_SCALE, concentration=(above(0.1), 1.0)), own_prior=standard_exponential
    ),
    "exponential": _independent(dist.Exponential, rate=(POSITIVE, 1.0)),
    "beta": _independent(dist.Beta, concentration1=(POSITIVE, 1.0), concentration0=(POSITIVE, 1.0)),
    "dirichlet": Family({"concentration": Parameter(POSITIVE, 1.0)}, partial(dist.Dirichlet, validate_args=False)),
}
CUSTOM = "custom"  # the name of p(x|z) if the decoder is user-defined
LIKELIHOODS = {name: family.likelihood for name, family in FAMILIES.items() if family.likelihood is not None}
NAMED_LIKELIHOODS = tuple(LIKELIHOODS)  # those that can be selected by name
TABLE = "table"  # the name of p(x|z) if each column has a family of its own
LIKELIHOODS[TABLE] = Likelihood(unit_interval=False, density=True)
LIKELIHOODS[CUSTOM] = Likelihood(unit_interval=False, density=True, standardize=True)
POSTERIORS = {name: family for name, family in FAMILIES.items() if family.for_latents}
