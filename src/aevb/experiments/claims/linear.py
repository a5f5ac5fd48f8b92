"""A linear variational auto-encoder compared with principal component analysis.

Paper: §4.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import optax
from jax import Array

from aevb.learners import AEVB, MCEM
from aevb.models import GenerativeModel, RecognitionModel, split, standard_normal
from aevb.networks import Linear, initialize
from aevb.training import Resident, Source, train_on

BATCH_SIZE = 100


class LinearGaussian(eqx.Module):
    """N(W c + b, s I): a Gaussian with linear mean and a learned variance that does not depend on the condition.

    Args:
        in_size: Width of the condition.
        out_size: Width of the variable.
        variances: () for one shared variance, or (out_size,) for one per variable.
    """

    mean: Linear
    log_variance: Array

    def __init__(self, in_size: int, out_size: int, variances: tuple[int, ...] = ()):
        self.mean = Linear(in_size, out_size)
        self.log_variance = jnp.zeros(variances)

    def __call__(self, condition: Array) -> dist.Distribution:
        """Return the distribution given the condition."""
        return dist.Normal(self.mean(condition), jnp.exp(self.log_variance / 2)).to_event(1)


def compare_with_pca(X: np.ndarray, latent_dim: int, epochs: int, seed: int = 0) -> dict[str, float]:
    """Learn a linear model by AEVB and compare it with the closed form.

    Returns:
        `angle`, the largest principal angle between the subspaces of the decoder and of PCA, in degrees, and
        `shortfall`, by how much the exact log-likelihood is below that of probabilistic PCA, in nats per datapoint.

    Paper: §4.
    """
    from scipy.linalg import subspace_angles
    from scipy.stats import multivariate_normal
    from sklearn.decomposition import PCA

    X = np.asarray(X, np.float32)
    decoder: Any = learn_linear(X, latent_dim, epochs, seed)[0].decoder
    W, b = (np.asarray(array, np.float64) for array in (decoder.mean.weight, decoder.mean.bias))
    pca = PCA(n_components=latent_dim).fit(X)
    ours = multivariate_normal(b, W @ W.T + np.exp(float(decoder.log_variance)) * np.eye(len(b))).logpdf(X).mean()
    angles = subspace_angles(W, pca.components_.T)  # pyright: ignore[reportOptionalMemberAccess]
    return {"angle": float(np.degrees(angles.max())), "shortfall": float(pca.score(X) - ours)}


def learn_linear(
    X: np.ndarray,
    latent_dim: int,
    epochs: int,
    seed: int = 0,
    learner_of: Callable = AEVB,
    updates_per_step: int = 1,
    weights: np.ndarray | None = None,
) -> tuple[GenerativeModel, RecognitionModel | None]:
    """Return the learned linear-Gaussian models, p(z) = N(0, I), p(x|z) = N(W z + b, s I).

    Args:
        X: (N, D).
        latent_dim: J.
        epochs: Passes through the data.
        seed: Random seed.
        learner_of: A class from :mod:`aevb.learners`.
        updates_per_step: How often the learner updates the weights per step.
        weights: (N,), of the rows; None if they are equal.
    """
    num_data, data_dim = X.shape
    generative = GenerativeModel(standard_normal(latent_dim), LinearGaussian(latent_dim, data_dim))
    recognition = RecognitionModel(LinearGaussian(data_dim, latent_dim, (latent_dim,)))
    generative, recognition = initialize((generative, recognition), jax.random.key(seed))
    models = generative, None if learner_of is MCEM else recognition
    steps = epochs * (num_data // BATCH_SIZE) * updates_per_step
    optimizer = optax.adam(optax.cosine_decay_schedule(1e-2, steps))  # so that it converges
    learner = learner_of(split(models).skeleton, num_data, optimizer=optimizer, parameter_prior=False)
    state = learner.init(models, learning_rate=1.0, key=jax.random.key(seed))
    feed = Resident(Source(X), np.arange(num_data), BATCH_SIZE, weights=weights)
    return learner.models(train_on(learner, state, feed, key=jax.random.key(seed + 1), max_epochs=epochs).state)
