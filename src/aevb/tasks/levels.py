"""Grey levels under a Bernoulli likelihood: a distribution over the level instead of over a binary pixel.

The Bernoulli term of a grey level x is not a density of x: it gives the mean of the level, but not its spread. The
spread is measured once, on training rows.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax import Array

from aevb.models import GenerativeModel

ROUNDING_VARIANCE = (1 / 255) ** 2 / 12  # of a grey level in a byte


class LevelDecoder(eqx.Module):
    r"""A Gaussian over grey levels, with the mean of a Bernoulli decoder and a fraction of its variance.

    .. math:: x_i | z \sim N(y_i(z),\; c\, y_i(z) (1 - y_i(z)) + r)

    c = 1 would be the variance of a binary pixel; r is the variance of rounding to a byte.

    Args:
        decoder: Maps one z to a Bernoulli distribution of pixels.
        dispersion: c, see :func:`dispersion`.
    """

    decoder: Callable[[Array], dist.Distribution]
    dispersion: Array

    def __call__(self, z: Array) -> dist.Distribution:
        """Return p(x|z) for one z (J,)."""
        mu = jnp.asarray(self.decoder(z).mean)
        variance = self.dispersion * mu * (1 - mu) + ROUNDING_VARIANCE
        return dist.Normal(mu, jnp.sqrt(variance), validate_args=False).to_event(1)


def of_levels(generative: GenerativeModel, dispersion: float) -> GenerativeModel:
    """Return a model of grey levels, given one with a Bernoulli decoder."""
    decoder = LevelDecoder(generative.decoder, jnp.asarray(dispersion, jnp.result_type(float)))
    return GenerativeModel(generative.prior, decoder)


def dispersion(levels: np.ndarray, means: np.ndarray) -> float:
    r"""Return the variance of grey levels about the decoder's means, relative to that of binary pixels.

    .. math:: c = \sum (x - y)^2 / \sum y (1 - y)

    Args:
        levels: x, (n, D).
        means: y, (n, D), the decoder's means.

    Returns:
        c, at most 1; 1 for binary data.

    Example:
        >>> dispersion(np.array([[0.4, 0.6]]), np.array([[0.5, 0.5]]))
        0.04
    """
    if np.isin(levels, (0, 1)).all():
        return 1.0
    levels, means = levels.astype(np.float64), means.astype(np.float64)
    return float(round(min(np.sum((levels - means) ** 2) / max(np.sum(means * (1 - means)), 1e-12), 1.0), 12))
