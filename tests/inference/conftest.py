"""Linear-Gaussian models, whose log p(x) and posterior have closed forms."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax import Array

from aevb.models import GenerativeModel, RecognitionModel, standard_normal


class LinearDecoder(eqx.Module):
    weight: Array
    bias: Array
    std: Array

    def __call__(self, z):
        return dist.Normal(self.weight @ z + self.bias, self.std).to_event(1)


class LinearEncoder(eqx.Module):
    weight: Array
    bias: Array
    scale_tril: Array

    def __call__(self, x):
        return dist.MultivariateNormal(self.weight @ x + self.bias, scale_tril=self.scale_tril)


class Exact(NamedTuple):
    """A model, its exact posterior, data, and their log p(x)."""

    generative: GenerativeModel
    recognition: RecognitionModel
    x: np.ndarray
    log_likelihoods: np.ndarray

    def log_likelihood(self, x):
        """log N(x; b, W W' + sigma^2 I)."""
        W, b, std = (np.asarray(a, np.float64) for a in jax_leaves(self.generative.decoder))
        return log_normal(x - b, W @ W.T + std**2 * np.eye(len(b)))

    def diagonal(self, spread=1.0):
        """An encoder with the same means and scaled variances, but no correlations."""
        encoder = self.recognition.encoder
        variance = (encoder.scale_tril**2).sum(1) * spread
        return RecognitionModel(
            LinearEncoder(encoder.weight, encoder.bias, jnp.diag(jnp.sqrt(variance)).astype(jnp.float32))
        )


def jax_leaves(decoder):
    return decoder.weight, decoder.bias, decoder.std


def log_normal(residuals, covariance):
    mahalanobis = np.einsum("ni,ij,nj->n", residuals, np.linalg.inv(covariance), residuals)
    return -(mahalanobis + np.linalg.slogdet(2 * np.pi * covariance)[1]) / 2


def make_exact(latent_dim, data_dim=5, num_data=200, seed=0, std=0.7, weight=None) -> Exact:
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(data_dim, latent_dim)) if weight is None else np.asarray(weight)
    W, b = W.astype(np.float32).astype(np.float64), rng.normal(size=len(W)).astype(np.float32).astype(np.float64)
    std = np.float64(np.float32(std))
    noise = std * rng.normal(size=(num_data, len(W)))
    x = (rng.normal(size=(num_data, latent_dim)) @ W.T + b + noise).astype(np.float32)
    covariance = np.linalg.inv(np.eye(latent_dim) + W.T @ W / std**2)
    gain = covariance @ W.T / std**2
    f32 = [jax.device_put(np.float32(a)) for a in (W, b, std, gain, -gain @ b, np.linalg.cholesky(covariance))]
    return Exact(
        GenerativeModel(standard_normal(latent_dim), LinearDecoder(*f32[:3])),
        RecognitionModel(LinearEncoder(*f32[3:])),
        x,
        log_normal(x - b, W @ W.T + std**2 * np.eye(len(W))),
    )


@pytest.fixture
def linear_gaussian():
    return make_exact
