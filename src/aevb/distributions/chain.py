"""Variables drawn one after the other, each given the previous ones: the levels of a hierarchy.

Paper: §7.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from numpyro.distributions import Distribution

from aevb.distributions.product import Product
from aevb.distributions.reparameterization import Reparameterization, reparameterize
from aevb.distributions.tree import TreeDistribution, over_samples, sampled

Factor = Distribution | Callable[[dict[str, Any]], Distribution]


class Chain(TreeDistribution):
    r"""An ordered set of named variables, each with a distribution given the previous ones.

    .. math:: p(z) = p(z_1)\, p(z_2 | z_1)\, p(z_3 | z_1, z_2) \dots

    Draws are dictionaries with these names.

    Args:
        factors: For each name, in the order of drawing, a distribution, or a function that takes the dictionary of the
            variables drawn before and returns one. A function that contains arrays must be a pytree, such as an Equinox
            module or ``jax.tree_util.Partial``, for the chain to pass through `jit`.

    Example:
        >>> import numpyro.distributions as dist
        >>> p = Chain({"upper": dist.Normal(0.0, 1.0), "lower": lambda z: dist.Normal(z["upper"], 1.0)})
        >>> print(f"{p.log_prob({'upper': 1.0, 'lower': 1.0}):.3f}")
        -2.338
    """

    pytree_data_fields = ("factors",)
    pytree_aux_fields = ("names",)

    def __init__(self, factors: Mapping[str, Factor]):
        self.names, self.factors = tuple(factors), tuple(factors.values())
        super().__init__()

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        """Draw a dictionary."""

        def draw(key):
            keys = dict(zip(self.names, jax.random.split(key, len(self.names)), strict=True))
            return self.draw(lambda name, factor: factor.sample(keys[name]))

        return sampled(draw, key, sample_shape)

    def log_prob(self, value: Any, intermediates: Any = None) -> Any:
        """Return the sum of the log densities, each given the previous variables."""

        def log_prob(z):
            return sum(jnp.asarray(factor.log_prob(z[name])) for name, factor in self.at(z).items())

        return over_samples(log_prob, self, value)

    @property
    def support(self) -> Any:
        """The supports, by name, given one draw of the other variables."""
        return {name: factor.support for name, factor in self.at(self.sample(jax.random.key(0))).items()}

    def draw(self, draw: Callable[[str, Distribution], Any]) -> dict[str, Any]:
        """Return a draw made by a function of a name and its distribution given the previous variables."""
        z = {}
        for name, factor in zip(self.names, self.factors, strict=True):
            z[name] = draw(name, _given(factor, z))
        return z

    def at(self, value: Mapping[str, Any]) -> dict[str, Distribution]:
        """Return the distribution of each variable, given the previous ones in one draw."""
        return {
            name: _given(factor, {before: value[before] for before in self.names[:place]})
            for place, (name, factor) in enumerate(zip(self.names, self.factors, strict=True))
        }

    def parents(self, name: str) -> set[str]:
        """Return the names that a factor may depend on."""
        return set() if isinstance(self.factors[self.names.index(name)], Distribution) else self.before(name)

    def before(self, name: str) -> set[str]:
        """Return the names on which a variable may be conditioned without changing its factor: the previous ones."""
        return set(self.names[: self.names.index(name)])


def _given(factor: Factor, z: dict[str, Any]) -> Distribution:
    return factor if isinstance(factor, Distribution) else factor(dict(z))


@reparameterize.register
def chain(q: Chain) -> Reparameterization:
    noise = {}

    def draw_any(name, factor):
        noise[name], transform = reparameterize(factor)
        return transform(noise[name].sample(jax.random.key(0)))  # noise has no parameters: any draw works

    q.draw(draw_any)
    return Reparameterization(Product(noise), Partial(_push, q, Product(noise)))


def _push(q, noise, epsilon):
    def push(epsilon):
        return q.draw(lambda name, factor: reparameterize(factor).transform(epsilon[name]))

    return over_samples(push, noise, epsilon)
