"""Independent named variables, each with its own distribution."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from numpyro.distributions import Distribution

from aevb.distributions.reparameterization import Reparameterization, reparameterize
from aevb.distributions.tree import TreeDistribution


class Product(TreeDistribution):
    r"""Independent variables, each with its own name and family, such as the columns of a table.

    .. math:: p(x) = \prod_k p_k(x_k)

    Draws are dictionaries with these names.

    Args:
        factors: A distribution for each name, with any event shape or over trees.

    Example:
        >>> import numpyro.distributions as dist
        >>> p = Product({"age": dist.Normal(40.0, 10.0), "is_member": dist.Bernoulli(0.5)})
        >>> print(f"{p.log_prob({'age': 40.0, 'is_member': 1}):.3f}")
        -3.915
    """

    pytree_data_fields = ("factors",)

    def __init__(self, factors: Mapping[str, Distribution]):
        self.factors = dict(factors)
        super().__init__()

    @property
    def names(self) -> tuple[str, ...]:
        """The names in alphabetical order, the order in which JAX flattens dictionaries."""
        return tuple(sorted(self.factors))

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        """Draw a dictionary."""
        keys = jax.random.split(key, len(self.factors))
        return {name: self.factors[name].sample(key, sample_shape) for name, key in zip(self.names, keys, strict=True)}

    def log_prob(self, value: Any, intermediates: Any = None) -> Any:
        """Return the sum of the log densities."""
        return sum(jnp.asarray(self.factors[name].log_prob(value[name])) for name in self.names)

    @property
    def mean(self) -> Any:
        """The means, by name."""
        return {name: self.factors[name].mean for name in self.names}

    @property
    def variance(self) -> Any:
        """The variances, by name."""
        return {name: self.factors[name].variance for name in self.names}

    @property
    def support(self) -> Any:
        """The supports, by name."""
        return {name: self.factors[name].support for name in self.names}

    # What the KL divergence needs from distributions with named factors; see `aevb.estimators.kl`.

    def at(self, value: Any) -> dict[str, Distribution]:
        """Return the factors; they do not depend on the value."""
        return self.factors

    def parents(self, name: str) -> set[str]:
        """Return the names that a factor may depend on: none."""
        return set()

    def before(self, name: str) -> set[str]:
        """Return the names on which a variable may be conditioned without changing its factor: all others."""
        return set(self.names) - {name}


@reparameterize.register
def product(q: Product) -> Reparameterization:
    parts = {name: reparameterize(factor) for name, factor in q.factors.items()}
    noise = Product({name: part.noise for name, part in parts.items()})
    return Reparameterization(noise, Partial(_push, {name: part.transform for name, part in parts.items()}))


def _push(transforms, epsilon):
    return {name: transform(epsilon[name]) for name, transform in transforms.items()}
