"""The models that most people want, from a few words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from aevb.models.conditionals import BernoulliMLP, GaussianMLP, Rescaled
from aevb.models.generative import GenerativeModel
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
        likelihood: A key of ``LIKELIHOODS``.
        activation: See :class:`aevb.networks.MLP`.
        units: Means and standard deviations of the columns, for networks that see standardized data.

    Returns:
        The generative model, with prior N(0, I), and the recognition model.

    Paper: §3.
    """
    decoder = LIKELIHOODS[likelihood].decoder(latent_dim, tuple(hidden), data_dim, activation)
    encoder = GaussianMLP(data_dim, tuple(reversed(hidden)), latent_dim, activation)
    if units is not None:
        gaussian = dist.Normal(*map(jnp.asarray, units))
        encoder, decoder = Rescaled(encoder, gaussian, "input"), Rescaled(decoder, gaussian, "output")
    return GenerativeModel(standard_normal(latent_dim), decoder), RecognitionModel(encoder)
