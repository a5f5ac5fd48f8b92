"""The recognition model q(z|x)."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
from numpyro.distributions import Distribution

from aevb.distributions import reparameterize


class RecognitionModel(eqx.Module):
    r"""The approximate posterior of one datapoint: a probabilistic encoder.

    .. math:: q_\phi(z | x) \approx p_\theta(z | x)

    Args:
        encoder: A callable that takes one x, an array or a :class:`~aevb.models.Datapoint`, and returns a
            reparameterizable distribution over z.

    Example:
        >>> import jax.numpy as jnp
        >>> from aevb.models import GaussianMLP, RecognitionModel
        >>> RecognitionModel(GaussianMLP(3, (5,), 2))(jnp.zeros(3)).event_shape
        (2,)

    Paper: §2.1, Figure 1.
    """

    encoder: Callable[[Any], Distribution]

    def __call__(self, x: Any) -> Distribution:
        """Return q(z|x)."""
        return self.encoder(x)

    def noise(self, x: Any) -> Distribution:
        """Return p(epsilon); it has no parameters, so any x of the right shape works."""
        return reparameterize(self.encoder(x)).noise


def noise_of(estimator: Callable, recognition: Any, x: Any) -> Any:
    """Return the distribution of the noise that an estimator needs for x: that of z, unless it says otherwise."""
    own = getattr(estimator, "noise", None)
    return recognition.noise(x) if own is None else own(recognition, x)
