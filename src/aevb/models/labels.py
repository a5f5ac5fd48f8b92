"""Models with a label y that is known for some rows: p(y) p(z) p(x|z, y), with q(y|x) and q(z|x, y)."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array, lax

from aevb.arrays import filled, on_device
from aevb.distributions import Product
from aevb.models.covariates import network_of
from aevb.models.datapoint import Datapoint
from aevb.models.generative import AbstractGenerativeModel, GenerativeModel
from aevb.models.recognition import RecognitionModel
from aevb.networks import MLP, Network, initialize


class LabelModel(AbstractGenerativeModel):
    r"""A conditional model with a distribution of what it is conditioned on, a label.

    .. math:: p(x, y, z) = p(y)\, p(z)\, p(x | z, y)

    Args:
        conditional: p(z) p(x|z, y).
        labels: p(y), which is not learned.
    """

    conditional: GenerativeModel
    labels: Any

    def __init__(self, conditional: GenerativeModel, labels: Any):
        self.conditional, self.labels = conditional, labels

    @property
    def prior(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """p(z)."""
        return self.conditional.prior

    @property
    def decoder(self) -> Callable[..., dist.Distribution]:
        """p(x|z, y)."""
        return self.conditional.decoder

    def log_likelihood(self, x: Any, z: Any) -> Array:
        """Return log p(x|z, y) for one x and one z."""
        return self.conditional.log_likelihood(x, z)


class LabelNetwork(eqx.Module):
    """q(y|x) as a network with an output for each label.

    Args:
        network: From what an encoder reads of x to the logits.
    """

    network: Network

    def __call__(self, x: Any) -> Any:
        """Return q(y|x)."""
        return dist.Categorical(logits=self.network(jnp.asarray(x)), validate_args=False)


class LabelEncoder(eqx.Module):
    """q(z|x, y), and q(y|x) by a network of the same form.

    Args:
        latent: Encoder of a datapoint with the label's indicator as what is given.
        label: Encoder of a datapoint without it, which returns a distribution of labels.
    """

    latent: Callable[[Any], dist.Distribution]
    label: Callable[[Any], Any]

    def __call__(self, x: Any) -> dist.Distribution:
        """Return q(z|x, y)."""
        return self.latent(x)

    def labels(self, x: Any) -> Any:
        """Return q(y|x)."""
        return self.label(without_label(x))


class FeatureEncoder(eqx.Module):
    """q(z|x) of a model without labels, and q(y|x) by a linear classifier of its mean.

    Args:
        latent: Encoder of a datapoint.
        label: From the mean of q(z|x) to the logits. Its gradient does not reach `latent`.
    """

    latent: Callable[[Any], dist.Distribution]
    label: LabelNetwork

    def __call__(self, x: Any) -> dist.Distribution:
        """Return q(z|x)."""
        return self.latent(without_label(x))

    def labels(self, x: Any) -> Any:
        """Return q(y|x)."""
        return self.label(lax.stop_gradient(self(x).mean))


def noise_with_label(recognition: Any, x: Any) -> Any:
    """Return the distribution of the noise of z, and of that by which one of K labels is drawn."""
    K = x.given.shape[-1]
    gumbel = dist.Gumbel(filled(K, 0), filled(K, 1), validate_args=False).to_event(1)
    return Product({"z": recognition.noise(x), "label": gumbel})


def without_label(x: Any) -> Any:
    """Return a datapoint that is not conditioned on anything."""
    x = Datapoint.of(x)
    return x.values if x.observed is None else x._replace(given=None)


def with_classifier(models: tuple[Any, Any], num_labels: int, latent_dim: int) -> tuple[Any, Any]:
    """Return a model without labels, with a linear classifier of its codes, all zero, next to it.

    Args:
        models: The pair (generative, recognition).
        num_labels: K.
        latent_dim: J.
    """
    generative, recognition = models
    label = LabelNetwork(MLP(latent_dim, (), num_labels))
    return generative, RecognitionModel(FeatureEncoder(recognition.encoder, label))


def with_labels(models: tuple[Any, Any], shares: Any, key: Array, init: str = "glorot") -> tuple[Any, Any]:
    """Return a model with labels, from a conditional one whose networks read an indicator of the label.

    Args:
        models: The pair (generative, recognition), see :func:`aevb.models.with_covariates`.
        shares: (K,), p(y).
        key: Random key for the initial values of q(y|x).
        init: See :func:`aevb.networks.initialize`.
    """
    generative, recognition = models
    encoder, K = recognition.encoder, len(shares)
    network = network_of(encoder)
    label = LabelNetwork(initialize(network.resized(network.in_size - K, K), key, init))
    if hasattr(encoder, "conditional"):  # around it, the same reading of x
        label = eqx.tree_at(lambda part: part.conditional, encoder, label)
    prior = dist.Categorical(probs=on_device(shares), validate_args=False)
    return LabelModel(generative, prior), RecognitionModel(LabelEncoder(encoder, label))
