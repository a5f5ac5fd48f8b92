"""A linear-Gaussian model, where every task has a closed form: x and y are jointly Gaussian."""

from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from jax import Array

from aevb.models import GenerativeModel, RecognitionModel, standard_normal

DATA_DIM, LATENT_DIM, NUM_ROWS = 8, 2, 16


class LinearDecoder(eqx.Module):
    weight: Array
    bias: Array
    std: Array

    def __call__(self, z):
        return dist.Normal(self.weight @ z + self.bias, self.std, validate_args=False).to_event(1)


class LinearEncoder(eqx.Module):
    weight: Array
    bias: Array
    scale_tril: Array

    def __call__(self, x):
        return dist.MultivariateNormal(self.weight @ x + self.bias, scale_tril=self.scale_tril)


class Linear(NamedTuple):
    generative: GenerativeModel
    recognition: RecognitionModel  # the exact posterior
    x: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray

    def given(self, A, noise_variance, y):
        """Means and standard deviations of x given y = A x + noise."""
        gain = self.covariance @ A.T @ np.linalg.inv(A @ self.covariance @ A.T + noise_variance * np.eye(len(A)))
        mean = self.mean + gain @ (y - A @ self.mean)
        return mean, np.sqrt(np.maximum(np.diag(self.covariance - gain @ A @ self.covariance), 0))


@pytest.fixture(scope="session")
def linear() -> Linear:
    rng = np.random.default_rng(0)
    W, b = rng.normal(size=(DATA_DIM, LATENT_DIM)), rng.normal(size=DATA_DIM)
    std = rng.uniform(0.4, 0.9, DATA_DIM)
    x = rng.normal(size=(NUM_ROWS, LATENT_DIM)) @ W.T + b + std * rng.normal(size=(NUM_ROWS, DATA_DIM))
    posterior = np.linalg.inv(np.eye(LATENT_DIM) + (W.T / std**2) @ W)
    gain = posterior @ W.T / std**2
    arrays = (W, b, std), (gain, -gain @ b, np.linalg.cholesky(posterior))
    decoder, encoder = ([jax.device_put(np.float32(a)) for a in part] for part in arrays)
    return Linear(
        GenerativeModel(standard_normal(LATENT_DIM), LinearDecoder(*decoder)),
        RecognitionModel(LinearEncoder(*encoder)),
        x.astype(np.float32),
        b,
        W @ W.T + np.diag(std**2),
    )
