"""Counts of words in a document: a multinomial distribution given the document's length."""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from numpyro.distributions import constraints

from aevb.distributions.log_rate_poisson import stirling_excess


class WordCounts(dist.Distribution):
    r"""A multinomial distribution over counts x (D,), given their sum, for networks that output logits.

    .. math:: \log p(x | N) = \log \frac{N!}{\prod_w x_w!} + \sum_w x_w \log \pi_w, \quad N = \sum_w x_w, \quad
        \pi = \mathrm{softmax}(\mathrm{logits})

    The length N is not modelled: the density of a document is conditional on its own length. It includes the
    multinomial coefficient, so that it is a probability of the counts, and sums to 1 over all documents of one length.
    :func:`log_coefficient` is the difference from the probability of the words in one particular order, which
    perplexity uses.

    Args:
        logits: (..., D), up to a constant.
        length: The length of documents that are drawn, and of the mean; it has no effect on densities.
        validate_args: As in numpyro.

    Example:
        >>> p = WordCounts(jnp.zeros(2), length=4.0)
        >>> print(f"{jnp.exp(p.log_prob(jnp.array([1, 1]))):.2f}", p.mean)
        0.50 [2. 2.]
    """

    arg_constraints = {"logits": constraints.real_vector, "length": constraints.nonnegative}
    support: Any = constraints.independent(constraints.nonnegative_integer, 1)

    def __init__(self, logits: Any, length: Any = 1.0, *, validate_args: bool | None = None):
        self.logits, self.length = jnp.asarray(logits), jnp.asarray(length)
        super().__init__(jnp.shape(logits)[:-1], jnp.shape(logits)[-1:], validate_args=validate_args)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw documents of the given length, rounded, as floating-point numbers."""
        shape = (*sample_shape, *self.batch_shape)
        lengths = jnp.broadcast_to(jnp.round(self.length), shape).astype(self.logits.dtype)
        return jax.random.multinomial(key, lengths, self.probs, shape=(*shape, *self.event_shape))

    def log_prob(self, value: Any, intermediates: Any = None) -> Array:
        """Return the log probability of counts (..., D) of any number type, given their sum."""
        x = jnp.asarray(value, self.logits.dtype)
        return jnp.sum(x * jax.nn.log_softmax(self.logits), axis=-1) + log_coefficient(x)

    @property
    def probs(self) -> Array:
        """The probabilities of the words, (..., D)."""
        return jax.nn.softmax(self.logits)

    @property
    def mean(self) -> Array:
        """The expected counts in a document of the given length, (..., D)."""
        return self.length[..., None] * self.probs

    @property
    def variance(self) -> Array:
        """The variances of these counts, (..., D)."""
        return self.mean * (1 - self.probs)


def log_coefficient(x: Array) -> Array:
    r"""Return the logarithm of the number of orders in which the words of a document can be written.

    .. math:: \log \frac{N!}{\prod_w x_w!} = s(N) - \sum_w \left[ s(x_w) + x_w \log \frac{x_w}{N} \right]

    with s from :func:`~aevb.distributions.log_rate_poisson.stirling_excess`. The terms of the usual formula, of
    the size of N log N, are not formed, so it is precise in float32.

    Args:
        x: Counts (..., D).

    Example:
        >>> print(f"{jnp.exp(log_coefficient(jnp.array([2.0, 1.0, 0.0]))):.3f}")
        3.000
    """
    total = jnp.sum(x, axis=-1)
    positive = jnp.where(x > 0, x, 1)
    share = x * jnp.log(positive / jnp.maximum(total, 1)[..., None])
    return stirling_excess(total) - jnp.sum(jnp.where(x > 0, stirling_excess(x) + share, 0), axis=-1)
