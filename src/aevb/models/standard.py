"""The models that most people want, from a few words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpyro.distributions as dist
from jax import Array

from aevb.arrays import on_device
from aevb.models.conditionals import BernoulliMLP, GaussianMLP, Rescaled
from aevb.models.generative import GenerativeModel
from aevb.models.posteriors import POSTERIORS
from aevb.models.recognition import RecognitionModel


@dataclass(frozen=True)
class Likelihood:
    """What is to be known of a likelihood by its name."""

    decoder: Callable[..., Callable[[Array], dist.Distribution]]  # of appendix C
    unit_interval: bool  # whether x lies in [0, 1]
    density: bool  # whether it is a density, which has no bound where a column is constant
    standardize: bool = False  # whether the networks see columns of mean 0 and variance 1


LIKELIHOODS = {
    "bernoulli": Likelihood(BernoulliMLP, unit_interval=True, density=False),
    "gaussian": Likelihood(GaussianMLP, unit_interval=False, density=True, standardize=True),
    "sigmoid-gaussian": Likelihood(
        lambda *sizes: GaussianMLP(*sizes, mean="sigmoid"), unit_interval=True, density=True
    ),
}


def standard_models(
    data_dim: int,
    latent_dim: int,
    hidden: Sequence[int],
    likelihood: str,
    activation: str = "tanh",
    units: tuple[Array, Array] | None = None,
    posterior: str = "gaussian",
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

    Returns:
        The generative model, with the prior that matches the posterior, N(0, I) for Gaussians, and the recognition
        model.

    Paper: §3.
    """
    decoder = LIKELIHOODS[likelihood].decoder(latent_dim, tuple(hidden), data_dim, activation)
    encoder = POSTERIORS[posterior].encoder(data_dim, tuple(reversed(hidden)), latent_dim, activation)
    if units is not None:
        gaussian = dist.Normal(*map(on_device, units))
        encoder, decoder = Rescaled(encoder, gaussian, "input"), Rescaled(decoder, gaussian, "output")
    return GenerativeModel(POSTERIORS[posterior].prior(latent_dim), decoder), RecognitionModel(encoder)
