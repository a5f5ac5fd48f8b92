"""Domains of parameters, as maps from all real numbers."""

from functools import partial

import jax.numpy as jnp
from jax import Array
from numpyro.distributions import transforms

# Log variances within these limits are the network's outputs: standard deviations from 0.007 to 150.
MAX_LOG_VARIANCE = 10.0
MAX_LOG_RATE = 20.0  # of counts

TINY = 1e-4  # smallest scale, rate or concentration: float32 draws near 1 hardly resolve a smaller one


# Softplus instead of the exponential, which would turn an output
# of 30 into a concentration of 1e13; and smooth limits, because gradients would vanish at hard ones.
def above(low):
    """Return a map to numbers above `low`, with slope 1 far from it."""
    return transforms.ComposeTransform([transforms.SoftplusTransform(), transforms.AffineTransform(low, 1.0)])


def between(low, high):
    """Return a map to numbers from `low` to `high`, with slope 1 in the middle."""
    width = high - low
    return transforms.ComposeTransform(
        [
            transforms.AffineTransform(0.0, 4 / width),
            transforms.SigmoidTransform(),
            transforms.AffineTransform(low, width),
        ]
    )


def limited(log_variance: Array, limit: float = MAX_LOG_VARIANCE) -> Array:
    r"""Limit a log variance, or another logarithm, so that its exponential is finite.

    Between -10 and 10 it is unchanged; beyond, it grows like a logarithm. At a hard limit the gradient would be zero,
    and a log variance beyond it could never return.

    Args:
        log_variance: Any real numbers.
        limit: Up to where they are unchanged.

    Example:
        >>> [round(float(v), 3) for v in limited(jnp.array([-1.0, 10.0, 1000.0]))]
        [-1.0, 10.0, 13.796]
    """
    excess = jnp.maximum(jnp.abs(log_variance) - limit, 0)
    held = jnp.sign(log_variance) * (limit + jnp.log1p(2 * excess) / 2)  # with slope 1 at the limit
    return jnp.where(excess > 0, held, log_variance)


REAL, POSITIVE = transforms.IdentityTransform(), above(TINY)
limited_rate = partial(limited, limit=MAX_LOG_RATE)
