"""A chain of vectors as a distribution over one vector: the levels of a hierarchy, one after the other.

Paper: §7.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial
from numpyro.distributions import Distribution, constraints

from aevb.distributions.chain import Chain
from aevb.distributions.reparameterization import Reparameterization, reparameterize


class Stack(Distribution):
    r"""A chain whose variables are vectors, as a distribution over the vector of all of them.

    .. math:: z = (z_1, \dots, z_L)

    Whatever needs a vector of latent variables works with it, and the KL divergence is still computed factor by factor,
    see :func:`aevb.estimators.kl`.

    Args:
        chain: The chain, in any order of drawing.
        sizes: The number of entries of each variable, in their order in the vector.

    Example:
        >>> import jax
        >>> import numpyro.distributions as dist
        >>> upper = dist.Normal(jnp.zeros(1), 1.0).to_event(1)
        >>> chain = Chain({"upper": upper, "lower": lambda z: dist.Normal(z["upper"] + jnp.ones(2), 1.0).to_event(1)})
        >>> p = Stack(chain, {"lower": 2, "upper": 1})
        >>> p.sample(jax.random.key(0), (5,)).shape, p.mean.tolist()
        ((5, 3), [1.0, 1.0, 0.0])
    """

    pytree_data_fields = ("chain",)
    pytree_aux_fields = ("sizes",)
    support: Any = constraints.real_vector

    def __init__(self, chain: Chain, sizes: Mapping[str, int]):
        self.chain, self.sizes = chain, tuple(sizes.items())
        super().__init__((), (sum(sizes.values()),), validate_args=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables, in their order in the vector."""
        return tuple(name for name, _ in self.sizes)

    def parts(self, z: Any) -> dict[str, Array]:
        """Return the variables that vectors (..., J) consist of."""
        found, start = {}, 0
        for name, size in self.sizes:
            found[name] = z[..., start : start + size]
            start += size
        return found

    def joined(self, parts: Mapping[str, Any]) -> Array:
        """Return the vectors that consist of these variables."""
        return jnp.concatenate([parts[name] for name in self.names], axis=-1)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        """Draw vectors."""
        return self.joined(self.chain.sample(key, sample_shape))

    def log_prob(self, value: Any, intermediates: Any = None) -> Any:
        """Return the sum of the log densities, each given the previous variables."""
        return self.chain.log_prob(self.parts(value))

    @property
    def mean(self) -> Any:
        """The mean of each variable, given the means of those drawn before it: exact where these enter linearly."""
        return self.joined(self.chain.draw(lambda name, factor: factor.mean))

    @property
    def variance(self) -> Any:
        """The variance of each variable, given the means of those drawn before it: less than the variance of all."""
        found = {}

        def keep(name, factor):
            found[name] = factor.variance
            return factor.mean

        self.chain.draw(keep)
        return self.joined(found)


@reparameterize.register
def stack(q: Stack) -> Reparameterization:
    noise, transform = reparameterize(q.chain)
    return Reparameterization(noise, Partial(_push, q, transform))


def _push(q, transform, epsilon):
    return q.joined(transform(epsilon))
