"""The families that q(z|x) can belong to, by name, and the network that gives their parameters.

Paper: §2.1, §2.4.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array
from numpyro.distributions import transforms
from numpyro.distributions.util import vec_to_tril_matrix

from aevb.arrays import filled
from aevb.distributions import Flow
from aevb.distributions.flow import coupling_shapes
from aevb.models.conditionals import GaussianMLP
from aevb.networks import MLP

NUM_LAYERS, WIDTH = 4, 32  # of a flow
NEAR_IDENTITY = 0.1  # what mixes variables is multiplied by this: networks start at random, and q with independent ones

TINY = 1e-4  # least scale, rate or concentration: draws of float32 near 1 hardly show a smaller one


# Where a parameter lives, as a map from all real numbers. Softplus instead of the exponential, which makes a
# concentration of 1e13 from an output of 30; and smooth limits, since at hard ones gradients would vanish.
def above(low):
    """Return a map to numbers above `low`, of slope 1 far from it."""
    return transforms.ComposeTransform([transforms.SoftplusTransform(), transforms.AffineTransform(low, 1.0)])


def between(low, high):
    """Return a map to numbers from `low` to `high`, of slope 1 in the middle."""
    width = high - low
    return transforms.ComposeTransform(
        [
            transforms.AffineTransform(0.0, 4 / width),
            transforms.SigmoidTransform(),
            transforms.AffineTransform(low, width),
        ]
    )


REAL, POSITIVE = transforms.IdentityTransform(), above(TINY)


class Parameter(NamedTuple):
    """One parameter of a family: where it lives, and where learning starts."""

    bijection: Any
    start: float | Callable[[int], Array]  # for each variable, or from their number

    def unconstrained_start(self, num_dimensions: int) -> Array:
        """Return the real numbers that the bijection takes to the start."""
        value = self.start(num_dimensions) if callable(self.start) else jnp.full(num_dimensions, self.start)
        return jnp.asarray(self.bijection.inv(value))


@dataclass(frozen=True)
class Family:
    """What is to be known of a family: its parameters, and how a distribution over one z is made of them."""

    parameters: Mapping[str, Parameter]
    distribution: Callable[..., dist.Distribution]
    shared: Callable[[int], dict] = lambda _: {}  # further arguments: arrays that are the same for each x, as zeros

    def num_outputs(self, num_dimensions: int) -> int:
        """Return how many real numbers make a distribution over this many variables."""
        return sum(map(len, self._starts(num_dimensions)))

    def at(self, outputs: Array, num_dimensions: int, **shared) -> dist.Distribution:
        """Return the distribution at real numbers (..., num_outputs); zeros are where learning starts."""
        starts = self._starts(num_dimensions)
        pieces = jnp.split(outputs, np.cumsum([len(start) for start in starts])[:-1], axis=-1)
        values = {
            name: parameter.bijection(piece + start)
            for (name, parameter), piece, start in zip(self.parameters.items(), pieces, starts, strict=True)
        }
        return self.distribution(**values, **shared)

    def start(self, num_dimensions: int) -> dist.Distribution:
        """Return the member that learning starts from; it serves as the matching prior."""
        return self.at(jnp.zeros(self.num_outputs(num_dimensions)), num_dimensions)

    def _starts(self, num_dimensions):
        return [parameter.unconstrained_start(num_dimensions) for parameter in self.parameters.values()]


def _independent(family, **parameters):
    """Return a family of independent variables of one kind."""
    return Family(
        {name: Parameter(*facts) for name, facts in parameters.items()},
        lambda **values: family(**values, validate_args=False).to_event(1),
    )


def _full_gaussian(loc, scale, mixing):
    """Return a Gaussian with Cholesky factor diag(scale) (I + mixing); what is below the diagonal starts small."""
    below = vec_to_tril_matrix(NEAR_IDENTITY * mixing, diagonal=-1)
    scale_tril = scale[..., None] * (jnp.eye(loc.shape[-1]) + below)
    return dist.MultivariateNormal(loc, scale_tril=scale_tril, validate_args=False)


def _flow(loc, scale, contexts, layers):
    """Return a flow whose layers know x through the biases of their hidden units."""
    contexts = jnp.split(contexts, len(layers), axis=-1)
    layers = [
        {**layer, "bias_in": layer["bias_in"] + context, "weight_out": NEAR_IDENTITY * layer["weight_out"]}
        for layer, context in zip(layers, contexts, strict=True)
    ]
    return Flow(loc, scale, layers, validate_args=False)


def _flow_layers(num_dimensions):
    shapes = coupling_shapes(num_dimensions, WIDTH)
    return {"layers": tuple({name: filled(shape, 0) for name, shape in shapes.items()} for _ in range(NUM_LAYERS))}


_LOC, _SCALE = (REAL, 0.0), (POSITIVE, 1.0)
FAMILIES = {
    "full-gaussian": Family(
        {
            "loc": Parameter(*_LOC),
            "scale": Parameter(*_SCALE),
            "mixing": Parameter(REAL, lambda num_dimensions: jnp.zeros(num_dimensions * (num_dimensions - 1) // 2)),
        },
        _full_gaussian,
    ),
    "flow": Family(
        {
            "loc": Parameter(*_LOC),
            "scale": Parameter(*_SCALE),
            "contexts": Parameter(REAL, lambda _: jnp.zeros(NUM_LAYERS * WIDTH)),
        },
        _flow,
        _flow_layers,
    ),
    "laplace": _independent(dist.Laplace, loc=_LOC, scale=_SCALE),
    "logistic": _independent(dist.Logistic, loc=_LOC, scale=_SCALE),
    "gumbel": _independent(dist.Gumbel, loc=_LOC, scale=_SCALE),
    # More than two degrees of freedom: below, the variance is infinite, and soon the mean does not exist.
    "student-t": _independent(dist.StudentT, df=(above(2.0), 5.0), loc=_LOC, scale=_SCALE),
    # The limits keep z itself within what float32 can hold.
    "lognormal": _independent(dist.LogNormal, loc=(between(-20.0, 20.0), 0.0), scale=(between(TINY, 4.0), 1.0)),
    "gamma": _independent(dist.Gamma, concentration=(POSITIVE, 1.0), rate=(POSITIVE, 1.0)),
    "weibull": _independent(dist.Weibull, scale=_SCALE, concentration=(above(0.1), 1.0)),
    "exponential": _independent(dist.Exponential, rate=(POSITIVE, 1.0)),
    "beta": _independent(dist.Beta, concentration1=(POSITIVE, 1.0), concentration0=(POSITIVE, 1.0)),
    "dirichlet": Family({"concentration": Parameter(POSITIVE, 1.0)}, partial(dist.Dirichlet, validate_args=False)),
}


class DistributionMLP(eqx.Module):
    r"""A distribution of any named family, whose parameters are an MLP of the condition.

    .. math:: q(z|x) = f(z; \lambda), \qquad \lambda = b(\mathrm{MLP}(x) + c)

    The bijection b takes real numbers to where the parameters live, and c is such that an output of zero gives the
    member of the family from which learning starts. A flow has besides weights of its own, the same for each x.

    Args:
        in_size: Width of the condition; 0 for a distribution without one.
        hidden: Widths of the hidden layers.
        out_size: Number of variables, J.
        activation: See :class:`aevb.networks.MLP`.
        family: A key of ``FAMILIES``.

    Example:
        >>> encoder = DistributionMLP(784, (500,), 2, family="gamma")
        >>> encoder(jnp.zeros(784)).mean.shape
        (2,)

    Paper: §2.1, §2.4.
    """

    network: MLP
    shared: dict[str, Any]
    family: str = eqx.field(static=True)
    out_size: int = eqx.field(static=True)

    def __init__(self, in_size: int, hidden: Sequence[int], out_size: int, activation: str = "tanh", *, family: str):
        self.network = MLP(in_size, hidden, FAMILIES[family].num_outputs(out_size), activation)
        self.shared = FAMILIES[family].shared(out_size)
        self.family, self.out_size = family, out_size

    def __call__(self, condition: Array) -> dist.Distribution:
        """Return the distribution at one condition, or at each of several (..., in_size)."""
        return FAMILIES[self.family].at(self.network(condition), self.out_size, **self.shared)


def standard_normal(latent_dim: int) -> dist.Distribution:
    """Return the prior N(0, I)."""
    return dist.Normal(filled(latent_dim, 0), filled(latent_dim, 1), validate_args=False).to_event(1)


def standard_exponential(latent_dim: int) -> dist.Distribution:
    """Return a gamma prior of shape and rate 1: a Weibull's KL from it is known, that from the equal Weibull is not."""
    return dist.Gamma(filled(latent_dim, 1), filled(latent_dim, 1), validate_args=False).to_event(1)


class Posterior(NamedTuple):
    """What is to be known of a posterior by its name."""

    encoder: Callable[..., Callable[[Array], dist.Distribution]]
    prior: Callable[[int], dist.Distribution]


_OTHER_PRIORS = {"full-gaussian": standard_normal, "flow": standard_normal, "weibull": standard_exponential}
POSTERIORS = {
    "gaussian": Posterior(GaussianMLP, standard_normal),
    **{
        name: Posterior(partial(DistributionMLP, family=name), _OTHER_PRIORS.get(name, family.start))
        for name, family in FAMILIES.items()
    },
}
