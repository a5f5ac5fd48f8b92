"""Variables with a few levels: categories, and levels that have an order."""

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from jax.nn import log_sigmoid
from numpyro.distributions import constraints

FAR = 1e9  # stands for infinity, in thresholds and in logits, where a true one would make gradients NaN


class AbstractLevels(dist.Distribution):
    """Codes 0, 1, ... of levels, of several variables with different numbers of them.

    All are padded to K levels; those beyond a variable's own number have probability zero.
    """

    num_levels: tuple[int, ...]  # of each variable, (d,)
    is_ordered: bool  # whether codes are ranks

    @property
    @abstractmethod
    def log_probabilities(self) -> Array:
        """Log probabilities of all levels, (..., d, K)."""

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw codes, as integers."""
        log_p = self.log_probabilities
        return jax.random.categorical(key, log_p, shape=(*sample_shape, *log_p.shape[:-1]))

    @property
    def probabilities(self) -> Array:
        """Probabilities of all levels, (..., d, K)."""
        return jnp.exp(self.log_probabilities)

    @property
    def mode(self) -> Array:
        """Codes of the most probable levels."""
        return jnp.argmax(self.log_probabilities, axis=-1)

    @property
    def support(self) -> Any:
        """Codes below the largest number of levels."""
        return constraints.integer_interval(0, max(self.num_levels) - 1)


class Levels(AbstractLevels):
    r"""Categories, by the logarithms of their probabilities, up to a constant.

    .. math:: p(x = k) = \frac{e^{l_k}}{\sum_i e^{l_i}}

    Args:
        logits: (..., d, K).
        num_levels: The number of levels of each variable, at most K; None for K. Logits beyond it are ignored.
        is_ordered: Whether the codes are ranks.
        validate_args: As in numpyro.

    Example:
        >>> p = Levels(jnp.zeros((2, 4)), num_levels=(4, 2))
        >>> p.probabilities.tolist()
        [[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0.0, 0.0]]
    """

    arg_constraints = {"logits": constraints.real_vector}
    pytree_aux_fields = ("num_levels", "is_ordered")

    def __init__(
        self,
        logits: Any,
        num_levels: tuple[int, ...] | None = None,
        *,
        is_ordered: bool = False,
        validate_args: bool | None = None,
    ):
        self.is_ordered = is_ordered
        *batch_shape, d, K = jnp.shape(logits)
        self.num_levels = (K,) * d if num_levels is None else tuple(num_levels)
        is_level = jnp.arange(K) < jnp.array(self.num_levels)[:, None]
        self.logits = logits if min(self.num_levels) == K else jnp.where(is_level, logits, -FAR)
        super().__init__((*batch_shape, d), validate_args=validate_args)

    def log_prob(self, value: Any, intermediates: Any = None) -> Array:
        """Return the log probabilities of codes (..., d) of any number type."""
        # A sum over all levels instead of a look-up, whose gradient XLA computes row by row on a CPU.
        chosen = jnp.sum(jnp.where(_is_code(value, self.logits.shape[-1]), self.logits, 0), axis=-1)
        return chosen - jax.nn.logsumexp(self.logits, axis=-1)

    @property
    def log_probabilities(self) -> Array:
        """Log probabilities of all levels, (..., d, K)."""
        return jax.nn.log_softmax(self.logits)


class OrderedLevels(AbstractLevels):
    r"""Levels with an order: the intervals between thresholds into which a logistic variable around `loc` falls.

    .. math:: p(x \leq k) = \sigma(b_k - \mu), \qquad
        \log p(x = k) = \log \sigma(b_k - \mu) + \log \sigma(\mu - b_{k-1}) + \log(1 - e^{b_{k-1} - b_k})

    The last term does not depend on mu, and no difference of probabilities is taken, which would round to zero for a mu
    far away.

    Args:
        loc: mu, (..., d).
        thresholds: (d, K - 1), in increasing order; b beyond those of a variable are those of infinity.
        num_levels: The number of levels of each variable, at most K; None for K. Thresholds beyond it are ignored.
        validate_args: As in numpyro.

    Example:
        >>> p = OrderedLevels(jnp.zeros(1), jnp.array([[-1.0, 1.0]]))
        >>> [round(share, 3) for share in p.probabilities[0].tolist()]
        [0.269, 0.462, 0.269]
    """

    arg_constraints = {"loc": constraints.real, "thresholds": constraints.real_vector}
    is_ordered = True
    pytree_aux_fields = ("num_levels",)

    def __init__(
        self, loc: Any, thresholds: Any, num_levels: tuple[int, ...] | None = None, *, validate_args: bool | None = None
    ):
        *_, d, K = jnp.shape(thresholds)
        K += 1
        self.num_levels = (K,) * d if num_levels is None else tuple(num_levels)
        is_threshold = jnp.arange(1, K) < jnp.array(self.num_levels)[:, None]
        self.loc, self.thresholds = loc, jnp.where(is_threshold, thresholds, FAR)
        super().__init__(jnp.shape(loc), validate_args=validate_args)

    def log_prob(self, value: Any, intermediates: Any = None) -> Array:
        """Return the log probabilities of codes (..., d) of any number type."""
        lower, upper = self._bounds()
        is_code = _is_code(value, lower.shape[-1])
        lower, upper = (jnp.sum(jnp.where(is_code, bound, 0), axis=-1) for bound in (lower, upper))
        return self._log_share(lower, upper, self.loc)

    @property
    def log_probabilities(self) -> Array:
        """Log probabilities of all levels, (..., d, K)."""
        return self._log_share(*self._bounds(), jnp.asarray(self.loc)[..., None])

    def _bounds(self):
        """Return the lower and upper ends of the levels, (d, K)."""
        far = jnp.full_like(self.thresholds[..., :1], FAR)
        lower = jnp.concatenate([-far, self.thresholds], axis=-1)
        return lower, jnp.concatenate([self.thresholds, far], axis=-1)

    def _log_share(self, lower, upper, loc):
        gap = jnp.maximum(upper - lower, 1e-30)  # levels beyond the last one have none, and a share of zero anyway
        return log_sigmoid(upper - loc) + log_sigmoid(loc - lower) + jnp.log(-jnp.expm1(-gap))


def _is_code(value, num_levels):
    """Return which of the levels is the one with this code, (..., d, K)."""
    return jnp.asarray(value)[..., None] == jnp.arange(num_levels, dtype=jnp.result_type(value))
