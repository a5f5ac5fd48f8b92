"""The models that most people want, from a few words."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from aevb.models.conditionals import BernoulliMLP, GaussianMLP, Rescaled
from aevb.models.generative import GenerativeModel
from aevb.models.recognition import RecognitionModel

# Name of a likelihood -> decoder of appendix C.
DECODERS = {
    "bernoulli": BernoulliMLP,
    "gaussian": GaussianMLP,
    "sigmoid-gaussian": lambda *sizes: GaussianMLP(*sizes, mean="sigmoid"),
}


def standard_normal(latent_dim: int) -> dist.Distribution:
    """Return the prior N(0, I)."""
    return dist.Normal(jnp.zeros(latent_dim), jnp.ones(latent_dim)).to_event(1)


def standard_models(
    data_dim: int,
    latent_dim: int,
    hidden: Sequence[int],
    likelihood: str,
    activation: str = "tanh",
    units: tuple[Array, Array] | None = None,
) -> tuple[GenerativeModel, RecognitionModel]:
    """Return the variational auto-encoder of §3, its parameters zero.

    Args:
        data_dim: D, the width of x.
        latent_dim: J, the width of z.
        hidden: Widths of the decoder's hidden layers; the encoder has them in reverse order.
        likelihood: A key of ``DECODERS``.
        activation: See :class:`aevb.networks.MLP`.
        units: Means and standard deviations of the columns, for networks that see standardized data.

    Returns:
        The generative model, with prior N(0, I), and the recognition model.

    Paper: §3.
    """
    decoder = DECODERS[likelihood](latent_dim, tuple(hidden), data_dim, activation)
    encoder = GaussianMLP(data_dim, tuple(reversed(hidden)), latent_dim, activation)
    if units is not None:
        gaussian = dist.Normal(*map(jnp.asarray, units))
        encoder, decoder = Rescaled(encoder, gaussian, "input"), Rescaled(decoder, gaussian, "output")
    return GenerativeModel(standard_normal(latent_dim), decoder), RecognitionModel(encoder)
