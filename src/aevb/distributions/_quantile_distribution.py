"""What the univariate families of this package share: they are sampled through their quantile function."""

from jax import random
from numpyro.distributions import Distribution

from aevb.distributions._representable import open_unit_interval


class QuantileDistribution(Distribution):
    """Abstract: a univariate distribution with an `icdf`, drawn as ``icdf(u)`` with u ~ U(0, 1)."""

    def sample(self, key, sample_shape=()):
        """Draw with shape ``sample_shape + batch_shape``, differentiable in the parameters."""
        u = random.uniform(key, shape=sample_shape + self.batch_shape)
        return self.icdf(open_unit_interval(u))
