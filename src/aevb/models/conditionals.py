"""Conditional distributions made of networks: the encoders and decoders of appendix C.

Paper: App. C.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from aevb.distributions import LogScaleNormal
from aevb.networks import MLP

# Of what is as the network says: standard deviations from 0.007 to 150, in the units it works in.
MAX_LOG_VARIANCE = 10.0
_MEANS: dict[str, Callable[[Array], Array]] = {"identity": lambda mu: mu, "sigmoid": jax.nn.sigmoid}


class BernoulliMLP(eqx.Module):
    r"""Factorized Bernoulli whose logits are an MLP of the condition.

    .. math:: \log p(x|z) = \sum_i x_i \log y_i + (1 - x_i) \log(1 - y_i), \quad y = \sigma(\mathrm{MLP}(z))

    It is kept as logits: probabilities in float32 would cap the loss of a pixel at 16 nats. Values of x between 0 and 1
    (grey levels) are allowed in this expression; it is then no log-probability, but the expectation of one under random
    binarization of x with probabilities x.

    Args:
        in_size: Width of the condition.
        hidden: Widths of the hidden layers.
        out_size: Number of binary variables.
        activation: See :class:`aevb.networks.MLP`.

    Example:
        >>> decoder = BernoulliMLP(2, (5,), 3)
        >>> decoder(jnp.zeros(2)).event_shape
        (3,)

    Paper: eq. (11), App. C.1.
    """

    network: MLP

    def __init__(self, in_size: int, hidden: Sequence[int], out_size: int, activation: str = "tanh"):
        self.network = MLP(in_size, hidden, out_size, activation)

    def __call__(self, condition: Array) -> dist.Distribution:
        """Return the distribution at one condition, or at each of several (..., in_size)."""
        logits = self.network(condition)
        return dist.BernoulliLogits(logits, validate_args=False).to_event(1)


class GaussianMLP(eqx.Module):
    r"""Gaussian with diagonal covariance whose mean and log variance are an MLP of the condition.

    .. math::
        \log p(x|z) = \log N(x; \mu, \sigma^2 I), \quad
        \mu = W_4 h + b_4, \quad \log \sigma^2 = W_5 h + b_5, \quad h = \tanh(W_3 z + b_3)

    As an encoder it is q(z|x), with x and z swapped. The two output layers are one matrix, :math:`(W_4, W_5)`. Log
    variances beyond ±10 are held back, see :func:`limited`.

    Args:
        in_size: Width of the condition.
        hidden: Widths of the hidden layers.
        out_size: Number of variables.
        activation: See :class:`aevb.networks.MLP`.
        mean: ``"identity"``, or ``"sigmoid"`` to hold the means in (0, 1), as for Frey Face.

    Example:
        >>> encoder = GaussianMLP(784, (500,), 2)
        >>> encoder(jnp.zeros(784)).mean.shape
        (2,)

    Paper: eq. (9), eq. (12), §3, App. C.2.
    """

    network: MLP
    mean: str = eqx.field(static=True)

    def __init__(
        self, in_size: int, hidden: Sequence[int], out_size: int, activation: str = "tanh", mean: str = "identity"
    ):
        if mean not in _MEANS:
            raise ValueError(f"mean: got {mean!r}, expected one of {tuple(_MEANS)}.")
        self.network = MLP(in_size, hidden, 2 * out_size, activation)
        self.mean = mean

    def __call__(self, condition: Array) -> dist.Distribution:
        """Return the distribution at one condition, or at each of several (..., in_size)."""
        mu, log_variance = jnp.split(self.network(condition), 2, axis=-1)
        return LogScaleNormal(_MEANS[self.mean](mu), limited(log_variance) / 2, validate_args=False).to_event(1)


def limited(log_variance: Array) -> Array:
    r"""Hold a log variance where its exponential is a number.

    Between -10 and 10 it stays as it is, beyond it grows as a logarithm: a hard limit would end its gradient there, and
    what ran away could never come back.

    Example:
        >>> [round(float(v), 3) for v in limited(jnp.array([-1.0, 10.0, 1000.0]))]
        [-1.0, 10.0, 13.796]
    """
    excess = jnp.maximum(jnp.abs(log_variance) - MAX_LOG_VARIANCE, 0)
    held = jnp.sign(log_variance) * (MAX_LOG_VARIANCE + jnp.log1p(2 * excess) / 2)  # of slope 1 where it begins
    return jnp.where(excess > 0, held, log_variance)


class Rescaled(eqx.Module):
    """A Gaussian encoder or decoder that works in standardized units of the data, and speaks in the data's own.

    The networks see columns of mean 0 and standard deviation 1; densities, draws and bounds stay in the units of x,
    because the decoder's Gaussian is moved and stretched back. The units are data, not parameters, and not learned.

    Args:
        conditional: The encoder or decoder inside.
        units: Gaussian with the columns' means and standard deviations, (D,).
        side: ``"input"`` to rescale what the encoder reads, ``"output"`` what the decoder's distribution is about.
    """

    conditional: Callable[[Array], dist.Distribution]
    units: dist.Normal
    side: str = eqx.field(static=True)

    def __call__(self, condition: Array) -> dist.Distribution:
        """Return q(z|x) for x in its own units, or p(x|z) over x in its own units."""
        loc, scale = jnp.asarray(self.units.loc), jnp.asarray(self.units.scale)
        if self.side == "input":
            return self.conditional((condition - loc) / scale)
        gaussian: Any = self.conditional(condition)
        standardized = gaussian.base_dist
        mu, log_sigma = loc + scale * standardized.loc, jnp.log(scale) + standardized.log_scale
        return LogScaleNormal(mu, log_sigma, validate_args=False).to_event(1)
