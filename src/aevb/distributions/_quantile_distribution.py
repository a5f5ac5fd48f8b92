"""Base classes of the univariate families of this package, which are sampled through their quantile function."""

from typing import Any, cast

import jax.numpy as jnp
from jax import Array, lax, random
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import promote_shapes

from aevb.distributions._representable import open_unit_interval

_dependent_property: Any = constraints.dependent_property  # its annotations reject valid arguments


class QuantileDistribution(Distribution):
    """Abstract: a univariate distribution with an `icdf`, drawn as ``icdf(u)`` with u ~ U(0, 1)."""

    support: Any  # a class attribute, as in numpyro's own families, not the property that the base class declares

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw with shape ``sample_shape + batch_shape``, differentiable in the parameters."""
        u = random.uniform(key, shape=sample_shape + self.batch_shape)
        return self.icdf(open_unit_interval(u))


class BoundedDistribution(QuantileDistribution):
    """Abstract: a quantile distribution between its parameters `low` and `high`."""

    low: Array
    high: Array

    @_dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)


def promote_parameters(*parameters: ArrayLike) -> tuple[list[Array], tuple[int, ...]]:
    """Return the parameters, each with as many dimensions as the largest, and the shape that they broadcast to."""
    promoted = cast(list[Array], promote_shapes(*parameters))
    return promoted, lax.broadcast_shapes(*map(jnp.shape, parameters))
