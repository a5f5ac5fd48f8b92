"""The generative model p(z) p(x|z)."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from numpyro.distributions import Distribution

from aevb.distributions import observe
from aevb.models.datapoint import Datapoint


class AbstractGenerativeModel(eqx.Module):
    r"""What learners, inference and tasks require of a generative model.

    .. math:: p_\theta(x, z) = p_\theta(z)\, p_\theta(x | z)

    Its `prior` is p(z), a distribution or a callable that returns one; its `decoder` maps one z to p(x|z). z is a
    vector or a tree of arrays, whatever the prior's draws are. x is an array, or a :class:`~aevb.models.Datapoint`. If
    entries are missing, all densities are those of the observed ones. What x is conditioned on, if anything, is the
    argument of a callable prior and the second argument of the decoder.
    """

    prior: eqx.AbstractVar[Distribution | Callable[..., Distribution]]
    decoder: eqx.AbstractVar[Callable[..., Distribution]]

    @abstractmethod
    def log_likelihood(self, x: Any, z: Any) -> Array:
        """Return log p(x|z) for one x (D,) and one z (J,)."""

    def latent_distribution(self, x: Any = None) -> Distribution:
        """Return p(z), given what the datapoint x is conditioned on, if anything."""
        if isinstance(self.prior, Distribution):
            return self.prior
        return self.prior(*conditions(x))

    def log_joint(self, x: Any, z: Any) -> Array:
        """Return log p(x, z) for one x (D,) and one z (J,)."""
        return jnp.asarray(self.latent_distribution(x).log_prob(z)) + self.log_likelihood(x, z)

    def sample(self, key: Array, *, mean: bool = False, given: Any = None) -> Any:
        """Draw one x by ancestral sampling: z from the prior, then x from the decoder, or the decoder's mean."""
        return self.sample_joint(key, mean=mean, given=given)[0]

    def sample_joint(self, key: Array, *, mean: bool = False, given: Any = None) -> tuple[Any, Any]:
        """Draw one x as `sample` does, and return it together with its z."""
        key_z, key_x = jax.random.split(key)
        x = Datapoint(None, given=given)
        z = self.latent_distribution(x).sample(key_z)
        p = self.decoder(z, *conditions(x))
        return p.mean if mean else p.sample(key_x), z


def conditions(x: Any) -> tuple:
    """Return the additional arguments of prior and decoder: what a datapoint is conditioned on, if anything."""
    return (x.given,) if isinstance(x, Datapoint) and x.given is not None else ()


class GenerativeModel(AbstractGenerativeModel):
    r"""A prior over the latent variables and a decoder.

    .. math:: p_\theta(x, z) = p_\theta(z)\, p_\theta(x | z)

    Args:
        prior: p(z): a distribution, which stays fixed, or a callable Equinox module that returns one, whose
            parameters are learned. It is called without arguments, or with what a datapoint is conditioned on.
        decoder: p(x|z): a callable that takes one z, and what a datapoint is conditioned on, if anything, and returns a
            distribution over one x.

    Example:
        >>> import jax.numpy as jnp
        >>> from aevb.models import BernoulliMLP, GenerativeModel, standard_normal
        >>> model = GenerativeModel(standard_normal(2), BernoulliMLP(2, (5,), 3))
        >>> print(f"{model.log_joint(jnp.ones(3), jnp.zeros(2)):.3f}")
        -3.917

    Paper: §2.1, Figure 1.
    """

    prior: Distribution | Callable[..., Distribution]
    decoder: Callable[..., Distribution]

    def log_likelihood(self, x: Any, z: Any) -> Array:
        """Return log p(x|z) for one x (D,) and one z (J,)."""
        values, observed, _ = Datapoint.of(x)
        p = self.decoder(z, *conditions(x))
        shape = jax.tree.map(jnp.shape, values)
        if isinstance(p, Distribution) and shape != p.shape():
            raise ValueError(f"x has shape {shape}, but datapoints of the decoder have shape {p.shape()}.")
        return jnp.asarray(observe(p, observed).log_prob(values))
