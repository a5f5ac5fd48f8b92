"""Models whose z is a tree, as models whose z is a vector, for methods that need one."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from numpyro.distributions import Distribution, constraints

from aevb.distributions import TreeDistribution, has_real_support
from aevb.distributions.tree import over_samples, sampled
from aevb.models.generative import AbstractGenerativeModel, conditions
from aevb.models.recognition import RecognitionModel

NUM_MOMENT_DRAWS = 1000


def flattened(generative: Any, recognition: Any, x: Any = None) -> tuple[Any, Any]:
    """Return the same models with z as a vector; models whose z already is one are returned unchanged.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x), or None.
        x: A datapoint, if the prior depends on what it is conditioned on.
    """
    if not isinstance(generative.latent_distribution(x), TreeDistribution):
        return generative, recognition
    encoder = None if recognition is None else RecognitionModel(FlatEncoder(recognition.encoder))
    return FlatModel(generative), encoder


class FlatModel(AbstractGenerativeModel):
    """A generative model whose z is a tree, as a model whose z is a vector.

    Args:
        model: The model whose z is a tree.
    """

    model: AbstractGenerativeModel

    def __init__(self, model: AbstractGenerativeModel):
        self.model = model

    @property
    def prior(self) -> Callable[..., Distribution]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """p(z), over vectors."""
        return self._prior

    @property
    def decoder(self) -> Callable[..., Distribution]:
        """p(x|z), given a vector."""
        return self._decoder

    def log_likelihood(self, x: Any, z: Array) -> Array:
        """Return log p(x|z) for one x and one vector z."""
        return self.model.log_likelihood(x, self._prior(*conditions(x)).unravel(z))

    def _prior(self, *given):
        prior = self.model.prior
        return FlatDistribution(prior if isinstance(prior, Distribution) else prior(*given))

    def _decoder(self, z, *given):
        return self.model.decoder(self._prior(*given).unravel(z), *given)


class FlatEncoder(eqx.Module):
    """An encoder whose z is a tree, as an encoder whose z is a vector."""

    encoder: Callable[..., Distribution]

    def __call__(self, x: Any) -> Distribution:
        """Return q(z|x), over vectors."""
        return FlatDistribution(self.encoder(x))


class FlatDistribution(Distribution):
    """A distribution over trees of arrays, as a distribution over vectors of all their entries."""

    pytree_data_fields = ("tree",)

    def __init__(self, tree: Distribution):
        self.tree = tree
        (size,) = jax.eval_shape(lambda: self._draw(jax.random.key(0))).shape
        super().__init__((), (size,), validate_args=False)

    def unravel(self, z: Array) -> Any:
        """Return the tree of one vector."""
        like = jax.eval_shape(lambda: self.tree.sample(jax.random.key(0)))
        return ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like))[1](z)

    def sample(self, key: Any, sample_shape=()) -> Any:
        """Draw vectors."""
        return sampled(self._draw, key, sample_shape)

    def log_prob(self, value: Any, intermediates=None) -> Any:
        """Return the log density of the tree."""
        return over_samples(lambda z: self.tree.log_prob(self.unravel(z)), self, value)

    @property
    def support(self) -> Any:
        """All real vectors, if the support of each array in the tree is unbounded."""
        return constraints.real_vector if has_real_support(self.tree) else self.tree.support

    @property
    def mean(self) -> Any:
        """The mean of the tree, or the average of 1000 fixed draws if there is no closed form."""
        return self._moment("mean", jnp.mean)

    @property
    def variance(self) -> Any:
        """The variance, likewise."""
        return self._moment("variance", jnp.var)

    def _moment(self, name, of_draws):
        try:
            return ravel_pytree(getattr(self.tree, name))[0]
        except NotImplementedError:
            return of_draws(self.sample(jax.random.key(0), (NUM_MOMENT_DRAWS,)), axis=0)

    def _draw(self, key):
        return ravel_pytree(self.tree.sample(key))[0]
