"""Topic models: documents as counts of words, whose log probabilities are linear in the latent variables.

Each latent variable is a topic: it raises or lowers the probabilities of words, from those in the average document.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax
from numpyro.distributions import Dirichlet, Distribution

from aevb.distributions import WordCounts
from aevb.models.conditionals import Conditional

INPUT_NORM = 5.0  # c, of what the encoder's network sees; with 15 learning is slower
SMOOTHING = 0.01  # added to the average count of each word relative to the average over words, so that none is 0
ON_SIMPLEX = 20.0  # factor for z with a sum of 1, which would need very large weights otherwise


class WordEncoder(eqx.Module):
    r"""q(z|x) for counts x: its network sees their logarithms, with the same norm for each document.

    .. math:: y = c\, \frac{\log(1 + x)}{\|\log(1 + x)\|}

    Raw counts of long documents would dominate the first layer.

    Args:
        conditional: The encoder inside.

    Example:
        >>> from aevb.models import conditional
        >>> WordEncoder(conditional(3, (), 2, family="gaussian"))(jnp.array([1.0, 0.0, 5.0])).event_shape
        (2,)
    """

    conditional: Conditional

    def __call__(self, x: Array) -> Distribution:
        """Return q(z|x) for counts (..., D)."""
        y = jnp.log1p(x)
        square = jnp.sum(y**2, axis=-1, keepdims=True)
        return self.conditional(INPUT_NORM * y * lax.rsqrt(jnp.maximum(square, 1e-6)))  # zeros if there are no words


class TopicDecoder(eqx.Module):
    r"""p(x|z): word counts whose log probabilities are linear in z, around those of the average document.

    .. math:: \pi(z) = \mathrm{softmax}(\log \bar\pi + W z + b)

    With z ~ N(0, I) this is the decoder of Miao, Yu and Blunsom, "Neural variational inference for text processing"
    (2016); with z on the simplex it is a product of experts, the ProdLDA of Srivastava and Sutton, "Autoencoding
    variational inference for topic models" (2017). z on the simplex is multiplied by 20.

    Args:
        conditional: A linear network with the family ``"multinomial"``.
        background: The word counts of the average document; its arrays are data and not learned.
        scale: Factor for z.
    """

    conditional: Conditional
    background: WordCounts
    scale: float = eqx.field(static=True)

    def __init__(self, conditional: Conditional, mean_counts: Any, scale: float = 1.0):
        mean_counts = jnp.asarray(mean_counts)
        smoothed = mean_counts + SMOOTHING * jnp.mean(mean_counts)
        logits = jnp.log(jnp.maximum(smoothed, jnp.finfo(smoothed.dtype).tiny))
        self.background = WordCounts(logits, jnp.sum(mean_counts), validate_args=False)
        self.conditional, self.scale = conditional, scale

    def __call__(self, z: Array) -> Distribution:
        """Return p(x|z) for z (..., J)."""
        words: Any = self.conditional(self.scale * z)
        return WordCounts(self.background.logits + words.logits, self.background.length, validate_args=False)

    @property
    def weights(self) -> Array:
        """W, (J, D): how much each latent variable changes the log probabilities of the words."""
        network: Any = self.conditional.network
        return self.scale * network.layers[-1].weight.T


def scale_for(prior: Distribution) -> float:
    """Return the factor for z under this prior."""
    return ON_SIMPLEX if isinstance(prior, Dirichlet) else 1.0
