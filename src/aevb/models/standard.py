"""The models that most people want, from a few words."""

from collections.abc import Sequence

import numpyro.distributions as dist
from jax import Array

from aevb.arrays import on_device
from aevb.models.conditionals import Rescaled, conditional
from aevb.models.families import POSTERIORS
from aevb.models.generative import GenerativeModel
from aevb.models.recognition import RecognitionModel


def standard_models(
    data_dim: int,
    latent_dim: int,
    hidden: Sequence[int],
    likelihood: str,
    activation: str = "tanh",
    units: tuple[Array, Array] | None = None,
    posterior: str = "gaussian",
    network: str = "mlp",
) -> tuple[GenerativeModel, RecognitionModel]:
    """Return the variational auto-encoder of §3, its parameters zero.

    Args:
        data_dim: D, the width of x.
        latent_dim: J, the width of z.
        hidden: Widths of the decoder's hidden layers; the encoder has them in reverse order.
        likelihood: A key of ``LIKELIHOODS``.
        activation: See :class:`aevb.networks.MLP`.
        units: Means and standard deviations of the columns, for networks that see standardized data.
        posterior: A key of ``POSTERIORS``.
        network: Of encoder and decoder, a key of :data:`aevb.networks.NETWORKS`.

    Returns:
        The generative model, with the prior that matches the posterior, N(0, I) for Gaussians, and the recognition
        model.

    Paper: §3.
    """
    encoder = conditional(data_dim, tuple(reversed(hidden)), latent_dim, activation, family=posterior, network=network)
    decoder = conditional(latent_dim, tuple(hidden), data_dim, activation, family=likelihood, network=network)
    if units is not None:
        gaussian = dist.Normal(*map(on_device, units))
        encoder, decoder = Rescaled(encoder, gaussian, "input"), Rescaled(decoder, gaussian, "output")
    return GenerativeModel(POSTERIORS[posterior].prior(latent_dim), decoder), RecognitionModel(encoder)
