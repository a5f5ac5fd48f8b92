"""Approximate posteriors without x: named families for a vector of real numbers, and learnable distributions.

Each is an Equinox module that returns a distribution when called, so that its arrays are learned.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array
from numpyro.distributions import Distribution
from numpyro.distributions.transforms import biject_to

from aevb.arrays import filled
from aevb.distributions.flow import Flow, starting_flow
from aevb.errors import WrongTypeError

START_SCALE = 0.1  # narrow: the first draws are close to the point where the log joint was found to be finite


class DiagonalGaussian(eqx.Module):
    """N(loc, diag(scale^2)) for a vector of this size: mean field."""

    loc: Array
    log_scale: Array

    def __init__(self, size: int):
        self.loc, self.log_scale = filled(size, 0), filled(size, np.log(START_SCALE))

    def __call__(self) -> Distribution:
        """Return the distribution."""
        return dist.Normal(self.loc, jnp.exp(self.log_scale), validate_args=False).to_event(1)


class FullGaussian(eqx.Module):
    """N(loc, L L^T) for a vector of this size, with L = diag(scale) (I + lower).

    The elements below the diagonal are in units of their row's scale, so that a step has the same effect on variables
    of any size.
    """

    loc: Array
    log_scale: Array
    lower: Array

    def __init__(self, size: int):
        self.loc, self.log_scale = filled(size, 0), filled(size, np.log(START_SCALE))
        self.lower = filled((size, size), 0)

    def __call__(self) -> Distribution:
        """Return the distribution."""
        unit_triangle = jnp.eye(len(self.loc)) + jnp.tril(self.lower, -1)
        scale_tril = jnp.exp(self.log_scale)[:, None] * unit_triangle
        return dist.MultivariateNormal(self.loc, scale_tril=scale_tril, validate_args=False)


class LowRankGaussian(eqx.Module):
    """N(loc, S (F F^T + I) S) for a vector of this size, with S = diag(scale) and an F with few columns."""

    loc: Array
    log_scale: Array
    factor: Array

    def __init__(self, size: int, rank: int | None = None):
        rank = min(size, 5) if rank is None else rank
        self.loc, self.log_scale = filled(size, 0), filled(size, np.log(START_SCALE))
        # Not zero: F and -F are equivalent, so the gradient vanishes there.
        self.factor = 0.1 * jax.random.normal(jax.random.key(0), (size, rank))

    def __call__(self) -> Distribution:
        """Return the distribution."""
        scale = jnp.exp(self.log_scale)
        return dist.LowRankMultivariateNormal(self.loc, scale[:, None] * self.factor, scale**2, validate_args=False)


class CouplingFlow(eqx.Module):
    """A Gaussian transformed by coupling layers (:class:`aevb.distributions.Flow`), for a vector of this size."""

    loc: Array
    log_scale: Array
    layers: Any

    def __init__(self, size: int):
        self.loc, self.log_scale = filled(size, 0), filled(size, np.log(START_SCALE))
        self.layers = starting_flow(jax.random.key(0), size).layers

    def __call__(self) -> Distribution:
        """Return the distribution."""
        return Flow(self.loc, jnp.exp(self.log_scale), self.layers, validate_args=False)


# Name -> module for a vector of this size.
POSTERIOR_FAMILIES: dict[str, Callable[[int], eqx.Module]] = {
    "gaussian": DiagonalGaussian,
    "full-gaussian": FullGaussian,
    "low-rank": LowRankGaussian,
    "flow": CouplingFlow,
}


class Learnable(eqx.Module):
    """A distribution whose parameters are learned, starting from their current values.

    The arrays are the unconstrained parameters, such as the logarithm of a scale. Parameters that several elements
    share, such as the scale in ``Normal(jnp.zeros(3), 1.0)``, become separate parameters.

    Args:
        distribution: A NumPyro distribution, possibly inside ``to_event``, ``expand`` or fixed transformations.

    Raises:
        TypeError: It has a parameter without a bijection from real numbers, such as the ends of ``Uniform``.

    Example:
        >>> q = Learnable(dist.Gamma(2.0, jnp.ones(3)))
        >>> q().concentration
        Array([2., 2., 2.], dtype=float32)
    """

    parameters: dict[str, Array]
    base: "Learnable | None"
    rebuild: Callable[..., Distribution] = eqx.field(static=True)

    def __init__(self, distribution: Distribution):
        self.parameters, self.base = {}, None
        if isinstance(distribution, dist.Independent):
            event_ndims = distribution.reinterpreted_batch_ndims
            self.base, self.rebuild = Learnable(distribution.base_dist), lambda base: base.to_event(event_ndims)
        elif isinstance(distribution, dist.ExpandedDistribution):
            # Each element has its own parameters now, so the base distribution alone, broadcast, is enough.
            inner = Learnable(_broadcast(distribution.base_dist, distribution.batch_shape))
            self.base, self.rebuild = inner, lambda base: base
        elif type(distribution) is dist.TransformedDistribution:
            transforms = distribution.transforms
            self.base = Learnable(distribution.base_dist)
            self.rebuild = lambda base: dist.TransformedDistribution(base, transforms)
        else:
            bijections = _bijections(distribution)
            values = _parameters(distribution, distribution.batch_shape)
            self.parameters = {name: bijections[name].inv(value) for name, value in values.items()}
            family = type(distribution)
            self.rebuild = lambda **free: family(
                **{name: bijections[name](value) for name, value in free.items()}, validate_args=False
            )

    def __call__(self) -> Distribution:
        """Return the distribution."""
        return self.rebuild(**self.parameters) if self.base is None else self.rebuild(self.base())


def _bijections(distribution):
    bijections = {}
    for name in _parameter_names(distribution):
        try:
            bijections[name] = biject_to(distribution.arg_constraints[name])
        except NotImplementedError:
            raise WrongTypeError(
                f"posterior: the parameter {name!r} of {type(distribution).__name__} cannot be learned: no "
                "bijection from real numbers is known. Give an Equinox module that returns the distribution, or a "
                "named family."
            ) from None
    return bijections


def _parameters(distribution, batch_shape):
    def broadcast(name):
        value = jnp.asarray(getattr(distribution, name), jnp.result_type(float))
        event_ndims = distribution.arg_constraints[name].event_dim
        return jnp.broadcast_to(value, (*batch_shape, *value.shape[value.ndim - event_ndims :]))

    return {name: broadcast(name) for name in _parameter_names(distribution)}


def _broadcast(distribution, batch_shape):
    return type(distribution)(**_parameters(distribution, batch_shape))


def _parameter_names(distribution):
    names = [name for name in distribution.arg_constraints if name in vars(distribution)]
    # A Gaussian has a Cholesky factor, whichever parameter it was created from.
    return [name for name in names if name not in ("covariance_matrix", "precision_matrix")]
