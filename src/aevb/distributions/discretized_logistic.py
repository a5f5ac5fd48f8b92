"""Levels of pixels as intervals of a mixture of logistic distributions."""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, lax
from jax.nn import log_sigmoid, softplus
from numpyro.distributions import constraints

NUM_STEPS = 255  # of 8-bit levels: x is one of 0, 1/255, ..., 1
HALF = 0.5 / NUM_STEPS


class DiscretizedLogistics(dist.Distribution):
    r"""Levels k/255: the probability that a mixture of logistic distributions has between k - 1/2 and k + 1/2 levels.

    .. math:: p(x) = \sum_m \pi_m \left[\sigma\Big(\frac{x + h - \mu_m}{s_m}\Big)
        - \sigma\Big(\frac{x - h - \mu_m}{s_m}\Big)\right], \quad h = \frac{1}{510}

    The first interval has no lower end, and the last one no upper end, so that the 256 probabilities sum to one
    (Salimans et al., "PixelCNN++", 2017, section 2.1; here the channels of a pixel are independent, too).

    Args:
        logits: (..., M, d), logarithms of the weights, up to a constant.
        loc: (..., M, d), the means.
        log_scale: (..., M, d), logarithms of the scales.
        validate_args: As in numpyro.

    Example:
        >>> p = DiscretizedLogistics(jnp.zeros((2, 1)), jnp.array([[0.2], [0.7]]), jnp.full((2, 1), -3.0))
        >>> x = jnp.arange(256.0)[:, None] / 255
        >>> print(f"{jnp.exp(p.log_prob(x)).sum():.4f}")
        1.0000
    """

    arg_constraints = {"logits": constraints.real, "loc": constraints.real, "log_scale": constraints.real}

    def __init__(self, logits: Any, loc: Any, log_scale: Any, *, validate_args: bool | None = None):
        self.logits, self.loc, self.log_scale = logits, loc, log_scale
        *batch, _, num_variables = jnp.shape(loc)
        super().__init__((*batch, num_variables), (), validate_args=validate_args)

    @property
    def support(self) -> Any:
        """Numbers from 0 to 1; others than the 256 levels are rounded to the nearest one."""
        return constraints.unit_interval

    @property
    def log_weights(self) -> Array:
        """Logarithms of the weights of the components, (..., M, d)."""
        return jax.nn.log_softmax(self.logits, axis=-2)

    def log_prob(self, value: Any) -> Array:
        """Return the log probability of levels, (..., d)."""
        x = jnp.round(NUM_STEPS * jnp.asarray(value))[..., None, :] / NUM_STEPS
        precision = jnp.exp(-self.log_scale)
        upper, lower = (x + HALF - self.loc) * precision, (x - HALF - self.loc) * precision
        # sigma(b) - sigma(a) = sigma(b) sigma(-a) (1 - exp(a - b)): exact where both are near 0 or near 1.
        inside = log_sigmoid(upper) + log_sigmoid(-lower) + jnp.log(-jnp.expm1(-2 * HALF * precision))
        component = jnp.where(x <= 0, log_sigmoid(upper), jnp.where(x >= 1, log_sigmoid(-lower), inside))
        return jax.nn.logsumexp(self.log_weights + component, axis=-2)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw levels, ``(*sample_shape, ..., d)``."""
        key_component, key_value = jax.random.split(key)
        shape = (*sample_shape, *jnp.shape(self.loc))
        gumbel = jax.random.gumbel(key_component, shape)
        chosen = jnp.argmax(self.log_weights + gumbel, axis=-2)[..., None, :]
        loc, log_scale = (
            jnp.take_along_axis(jnp.broadcast_to(parameter, shape), chosen, axis=-2)[..., 0, :]
            for parameter in (self.loc, self.log_scale)
        )
        x = loc + jnp.exp(log_scale) * jax.random.logistic(key_value, loc.shape)
        return jnp.clip(jnp.round(NUM_STEPS * x), 0, NUM_STEPS) / NUM_STEPS

    @property
    def mean(self) -> Array:
        r"""Means, (..., d), up to half a level.

        E[x] is a sum of probabilities of larger levels, here the integral that it approximates:
        :math:`\int_0^1 \sigma((\mu - t) / s)\, dt`.
        """
        scale = jnp.exp(self.log_scale)
        expected = scale * (softplus(self.loc / scale) - softplus((self.loc - 1) / scale))
        return jnp.sum(jnp.exp(self.log_weights) * expected, axis=-2)

    @property
    def variance(self) -> Array:
        """Variances, (..., d)."""
        precision, weights = jnp.exp(-self.log_scale), jnp.exp(self.log_weights)

        def add(k, sums):
            first, second = sums
            at_least = jnp.sum(weights * jax.nn.sigmoid((self.loc - (k - 0.5) / NUM_STEPS) * precision), axis=-2)
            return first + at_least, second + (2 * k - 1) * at_least  # E[k] and E[k^2] as sums of P(level >= k)

        zero = jnp.zeros(self.batch_shape, jnp.result_type(float))
        first, second = lax.fori_loop(1, NUM_STEPS + 1, add, (zero, zero))
        return (second - first**2) / NUM_STEPS**2
