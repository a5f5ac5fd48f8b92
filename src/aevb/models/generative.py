"""The generative model p(z) p(x|z)."""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from numpyro.distributions import Distribution


class AbstractGenerativeModel(eqx.Module):
    r"""What learners, inference and tasks ask of a generative model.

    .. math:: p_\theta(x, z) = p_\theta(z)\, p_\theta(x | z)

    Its `prior` is p(z), a distribution or a callable without arguments that returns one; its `decoder` maps one z to
    p(x|z).
    """

    prior: eqx.AbstractVar[Distribution | Callable[[], Distribution]]
    decoder: eqx.AbstractVar[Callable[[Array], Distribution]]

    @abstractmethod
    def log_likelihood(self, x: Array, z: Array) -> Array:
        """Return log p(x|z) for one x (D,) and one z (J,)."""

    def latent_distribution(self) -> Distribution:
        """Return p(z)."""
        if isinstance(self.prior, Distribution):
            return self.prior
        return self.prior()

    def log_joint(self, x: Array, z: Array) -> Array:
        """Return log p(x, z) for one x (D,) and one z (J,)."""
        return jnp.asarray(self.latent_distribution().log_prob(z)) + self.log_likelihood(x, z)

    def sample(self, key: Array, *, mean: bool = False) -> Array:
        """Draw one x by ancestral sampling: z from the prior, then x from the decoder, or the decoder's mean."""
        return self.sample_joint(key, mean=mean)[0]

    def sample_joint(self, key: Array, *, mean: bool = False) -> tuple[Array, Array]:
        """Draw one x as `sample` does, and return it with the z behind it."""
        key_z, key_x = jax.random.split(key)
        z = jnp.asarray(self.latent_distribution().sample(key_z))
        p = self.decoder(z)
        return jnp.asarray(p.mean if mean else p.sample(key_x)), z


class GenerativeModel(AbstractGenerativeModel):
    r"""A prior over the latent variables and a decoder.

    .. math:: p_\theta(x, z) = p_\theta(z)\, p_\theta(x | z)

    Args:
        prior: p(z): a distribution, which then stays as it is, or a callable Equinox module without arguments that
            returns one, whose parameters are learned.
        decoder: p(x|z): a callable that takes one z and returns a distribution over one x.

    Example:
        >>> import jax.numpy as jnp
        >>> from aevb.models import BernoulliMLP, GenerativeModel, standard_normal
        >>> model = GenerativeModel(standard_normal(2), BernoulliMLP(2, (5,), 3))
        >>> print(f"{model.log_joint(jnp.ones(3), jnp.zeros(2)):.3f}")
        -3.917

    Paper: §2.1, Figure 1.
    """

    prior: Distribution | Callable[[], Distribution]
    decoder: Callable[[Array], Distribution]

    def log_likelihood(self, x: Array, z: Array) -> Array:
        """Return log p(x|z) for one x (D,) and one z (J,)."""
        p = self.decoder(z)
        if isinstance(p, Distribution) and jnp.shape(x) != p.shape():
            raise ValueError(f"x has shape {jnp.shape(x)}, and one datapoint of the decoder has {p.shape()}.")
        return jnp.asarray(p.log_prob(x))
