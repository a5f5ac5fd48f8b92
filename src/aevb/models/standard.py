"""Standard models, from names and sizes."""

from collections.abc import Sequence

import numpyro.distributions as dist
from jax import Array

from aevb.arrays import filled, on_device
from aevb.models.conditionals import Rescaled, conditional
from aevb.models.families import FAMILIES, POSTERIORS
from aevb.models.generative import GenerativeModel
from aevb.models.recognition import RecognitionModel
from aevb.models.topics import TopicDecoder, WordEncoder, scale_for
from aevb.networks import NetworkKind


def standard_models(
    data_dim: int,
    latent_dim: int,
    hidden: Sequence[int],
    likelihood: str,
    activation: str = "tanh",
    units: tuple[Array, Array] | None = None,
    posterior: str = "gaussian",
    network: str | NetworkKind = "mlp",
) -> tuple[GenerativeModel, RecognitionModel]:
    """Return the variational auto-encoder of §3, with all parameters zero.

    Args:
        data_dim: D, the width of x.
        latent_dim: J, the width of z.
        hidden: Widths of the decoder's hidden layers; the encoder has them in reverse order. For counts, those of the
            encoder: the decoder is linear.
        likelihood: A key of ``LIKELIHOODS``.
        activation: See :class:`aevb.networks.MLP`.
        units: Means and standard deviations of the columns, for networks that see standardized data; for counts,
            only the means are used, as the average document.
        posterior: A key of ``POSTERIORS``.
        network: The network of encoder and decoder, a key of :data:`aevb.networks.NETWORKS`, or a
            :class:`aevb.networks.NetworkKind`.

    Returns:
        The generative model, whose prior matches the posterior (N(0, I) for Gaussians), and the recognition model.

    Paper: §3.
    """
    prior = POSTERIORS[posterior].prior(latent_dim)
    kind = FAMILIES[likelihood].likelihood
    if kind is not None and kind.counts:
        widths = tuple(reversed(hidden))
        encoder = conditional(data_dim, widths, latent_dim, activation, family=posterior, network=network)
        decoder = conditional(latent_dim, (), data_dim, family=likelihood)
        mean_counts = filled(data_dim, 1) if units is None else units[0]
        topics = TopicDecoder(decoder, mean_counts, scale_for(prior))
        return GenerativeModel(prior, topics), RecognitionModel(WordEncoder(encoder))
    encoder = conditional(data_dim, tuple(reversed(hidden)), latent_dim, activation, family=posterior, network=network)
    of_decoder = {"family": likelihood, "network": network, "side": "output"}
    decoder = conditional(latent_dim, tuple(hidden), data_dim, activation, **of_decoder)
    if units is not None:
        gaussian = dist.Normal(*map(on_device, units))
        encoder, decoder = Rescaled(encoder, gaussian, "input"), Rescaled(decoder, gaussian, "output")
    return GenerativeModel(prior, decoder), RecognitionModel(encoder)
