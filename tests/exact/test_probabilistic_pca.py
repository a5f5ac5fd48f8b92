"""A linear variational auto-encoder learns what probabilistic PCA has in closed form.

At the optimum the columns of the decoder's matrix are orthogonal, so a diagonal posterior is exact, and the bound is
the maximum likelihood (Lucas, Tucker, Grosse and Norouzi, "Don't blame the ELBO!", 2019).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import optax
import pytest
from jax import Array
from scipy.linalg import subspace_angles
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from aevb.learners import AEVB, MCEM, WakeSleep
from aevb.models import GenerativeModel, RecognitionModel, split, standard_normal
from aevb.networks import Linear, initialize
from aevb.training import Source, train

LATENT_DIM = 5
MAX_EPOCHS = 200
BATCH_SIZE = 100
X = load_digits().data / 16


class LinearGaussian(eqx.Module):
    """A Gaussian with linear mean and a learned variance that does not depend on the condition."""

    mean: Linear
    log_variance: Array

    def __call__(self, condition):
        return dist.Normal(self.mean(condition), jnp.exp(self.log_variance / 2)).to_event(1)


def learn(X, learner_of, updates_per_step=1):
    num_data, data_dim = X.shape
    decoder = LinearGaussian(Linear(LATENT_DIM, data_dim), jnp.zeros(()))  # one noise variance for all pixels
    encoder = LinearGaussian(Linear(data_dim, LATENT_DIM), jnp.zeros(LATENT_DIM))
    models = GenerativeModel(standard_normal(LATENT_DIM), decoder), RecognitionModel(encoder)
    generative, recognition = initialize(models, jax.random.key(0))
    models = generative, None if learner_of is MCEM else recognition
    num_updates = MAX_EPOCHS * (num_data // BATCH_SIZE) * updates_per_step
    optimizer = optax.adam(optax.cosine_decay_schedule(1e-2, num_updates))
    learner = learner_of(split(models).skeleton, num_data, optimizer=optimizer, parameter_prior=False)
    trained = train(
        learner,
        learner.init(models, learning_rate=1.0, key=jax.random.key(0)),
        Source(X),
        np.arange(num_data),
        key=jax.random.key(1),
        batch_size=BATCH_SIZE,
        max_epochs=MAX_EPOCHS,
    )
    return learner.models(trained.state)


def linear_gaussian_parts(generative):
    W = np.asarray(generative.decoder.mean.weight, np.float64)
    b = np.asarray(generative.decoder.mean.bias, np.float64)
    return W, b, np.exp(float(generative.decoder.log_variance))


def log_likelihood(X, W, b, variance):
    return multivariate_normal(b, W @ W.T + variance * np.eye(len(b))).logpdf(X).mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner_of", "updates_per_step"),
    # Measured: 0.08% and 0.16% below the maximum. Wake-sleep's two objectives agree where the posterior is in the
    # encoder's family, as it is at the optimum here; the single dream of a step leaves its encoder noisier.
    [(MCEM, 5), (WakeSleep, 1)],
)
def test_the_rivals_reach_it_within_one_percent(learner_of, updates_per_step):
    generative, _ = learn(X.astype(np.float32), learner_of, updates_per_step)
    maximum = PCA(n_components=LATENT_DIM).fit(X).score(X)
    assert maximum * (1 - 0.01) < log_likelihood(X, *linear_gaussian_parts(generative)) < maximum * (1 + 1e-4)


def test_a_linear_vae_reaches_the_maximum_likelihood_of_probabilistic_pca():
    generative, recognition = learn(X.astype(np.float32), AEVB)
    W, b, variance = linear_gaussian_parts(generative)

    pca = PCA(n_components=LATENT_DIM).fit(X)
    maximum = pca.score(X)  # 8.908 nats a datapoint
    # PCA divides by N - 1, so its score is not quite the maximum: the allowance above.
    assert maximum * (1 - 0.003) < log_likelihood(X, W, b, variance) < maximum * (1 + 1e-4)
    assert np.degrees(subspace_angles(W, pca.components_.T).max()) < 2
    np.testing.assert_allclose(variance, pca.noise_variance_, rtol=0.01)

    # The encoder has learned the posterior's mean, too: M^-1 W^T (x - b) with M = W^T W + variance I.
    posterior_means = np.linalg.solve(W.T @ W + variance * np.eye(LATENT_DIM), W.T @ (X - b).T).T
    encoded = np.asarray(recognition(X.astype(np.float32)).mean)
    assert np.mean((encoded - posterior_means) ** 2) < 0.01 * np.mean(posterior_means**2)
