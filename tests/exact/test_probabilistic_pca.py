"""A linear variational auto-encoder learns the closed-form solution of probabilistic PCA.

At the optimum the columns of the decoder's matrix are orthogonal, so a diagonal posterior is exact, and the bound is
the maximum likelihood (Lucas, Tucker, Grosse and Norouzi, "Don't blame the ELBO!", 2019).
"""

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.stats import multivariate_normal
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from aevb import VAE
from aevb.experiments.claims.linear import learn_linear
from aevb.learners import MCEM, WakeSleep

LATENT_DIM = 5
MAX_EPOCHS = 200
X = load_digits().data / 16
ROWS = X.astype(np.float32)


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
def test_the_baselines_reach_the_maximum_within_one_percent(learner_of, updates_per_step):
    generative, _ = learn_linear(ROWS, LATENT_DIM, MAX_EPOCHS, 0, learner_of, updates_per_step)
    maximum = PCA(n_components=LATENT_DIM).fit(X).score(X)
    assert maximum * (1 - 0.01) < log_likelihood(X, *linear_gaussian_parts(generative)) < maximum * (1 + 1e-4)


@pytest.mark.thorough
def test_a_linear_vae_reaches_the_maximum_likelihood_of_probabilistic_pca():
    generative, recognition = learn_linear(ROWS, LATENT_DIM, MAX_EPOCHS)
    W, b, variance = linear_gaussian_parts(generative)

    pca = PCA(n_components=LATENT_DIM).fit(X)
    maximum = pca.score(X)  # 8.908 nats per datapoint
    # PCA divides by N - 1, so its score is not quite the maximum: the allowance above.
    assert maximum * (1 - 0.003) < log_likelihood(X, W, b, variance) < maximum * (1 + 1e-4)
    assert np.degrees(subspace_angles(W, pca.components_.T).max()) < 2
    np.testing.assert_allclose(variance, pca.noise_variance_, rtol=0.01)

    # The encoder has also learned the posterior mean: M^-1 W^T (x - b) with M = W^T W + variance I.
    posterior_means = np.linalg.solve(W.T @ W + variance * np.eye(LATENT_DIM), W.T @ (X - b).T).T
    encoded = np.asarray(recognition(ROWS).mean)
    assert np.mean((encoded - posterior_means) ** 2) < 0.01 * np.mean(posterior_means**2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:k-hat")  # of a few rows, whose values are then too low
@pytest.mark.parametrize("latent_dim", [2, 5])
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_a_linear_model_with_default_settings_reaches_ppca(load, latent_dim):
    """It may be higher: each column has its own variance, as in factor analysis."""
    X = StandardScaler().fit_transform(load().data)
    vae = VAE(latent_dim, hidden=(), likelihood="gaussian", progress=False).fit(X)
    estimate = vae.log_likelihood(X, num_samples=1000)
    assert estimate.std_error < 0.02
    assert estimate.mean > PCA(latent_dim).fit(X).score(X) - 0.05


@pytest.mark.thorough
def test_with_weights_a_linear_vae_reaches_the_maximum_of_repeated_rows():
    """Measured: 0.02 degrees and 0.00002 nats from it; without weights 28 degrees and 0.5 nats."""
    rng, counts = np.random.default_rng(0), np.repeat([4, 1], 500)
    axes = np.repeat([[2.0, 0.0, 1.0, 0.5], [0.0, 2.0, 1.0, -0.5]], 500, axis=0)
    rows = (rng.normal(size=(1000, 1)) * axes + 0.5 * rng.normal(size=(1000, 4)) + 1).astype(np.float32)
    pca = PCA(n_components=1).fit(repeated := np.repeat(rows, counts, axis=0))
    found = {}
    for name, weights in {"weighted": counts.astype(float), "equal": None}.items():
        W, b, variance = linear_gaussian_parts(learn_linear(rows, 1, 2 * MAX_EPOCHS, weights=weights)[0])
        angle = np.degrees(subspace_angles(W, pca.components_.T).max())
        found[name] = angle, pca.score(repeated) - log_likelihood(repeated, W, b, variance)
    assert found["weighted"][0] < 0.5
    assert -1e-4 < found["weighted"][1] < 1e-3
    assert found["equal"][0] > 10
