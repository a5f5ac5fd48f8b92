"""Learned priors by name: densities that integrate to one, and a better model of data with clusters."""

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

from aevb import VAE, load

CENTERS = np.array([[4.0, 0.0, 1.0], [-4.0, 1.0, 0.0], [0.0, 5.0, -4.0], [0.5, -5.0, 4.0]])
RNG = np.random.default_rng(0)
X = (CENTERS[RNG.integers(4, size=2000)] + 0.3 * RNG.normal(size=(2000, 3))).astype(np.float32)
TRAIN, TEST = X[:1500], X[1500:]
EDGE = 12.0  # of the square of z that is integrated over
GRID = np.linspace(-EDGE, EDGE, 481)
PLANE = np.stack(np.meshgrid(GRID, GRID), axis=-1).reshape(-1, 2).astype(np.float32)


def fitted(prior, max_epochs=60):
    # Not the linear start, which solves a mixture by itself; one hidden layer that bends space a little.
    options = {"init": "glorot", "hidden": (16,), "likelihood": "gaussian", "batch_size": 100, "estimator": "sgvb-a"}
    return VAE(2, prior=prior, max_epochs=max_epochs, learning_rate=0.01, progress=False, **options).fit(TRAIN)


@pytest.mark.slow
def test_learned_priors_beat_the_standard_one_on_clusters(tmp_path):
    bounds = {}
    for prior in ("standard", "mixture", "flow", "vamp"):
        vae = fitted(prior)
        bounds[prior] = vae.score(TEST, num_samples=50)
        log_prior = np.asarray(jax.jit(jax.vmap(vae.generative_.latent_distribution().log_prob))(PLANE), np.float64)
        area = (GRID[1] - GRID[0]) ** 2
        assert np.exp(logsumexp(log_prior)) * area == pytest.approx(1, abs=0.01)
        # log p(x) by quadrature: no bound exceeds it, up to 5 standard errors of its 50 samples and the grid's error.
        rows = TEST[:20]
        joint = jax.jit(jax.vmap(jax.vmap(vae.generative_.log_joint, (None, 0)), (0, None)))(rows, PLANE)
        exact = logsumexp(np.asarray(joint, np.float64), axis=1) + np.log(area)
        assert (vae.score_samples(rows, num_samples=1000) < exact + 0.1).all()
        vae.save(tmp_path / prior)
        again = load(tmp_path / prior)
        assert again.prior_ == prior
        assert again.score(TEST) == vae.score(TEST)
        assert vae.sample(10).shape == (10, 3)
    assert min(bounds["mixture"], bounds["flow"], bounds["vamp"]) > bounds["standard"] + 0.2, bounds


@pytest.mark.thorough
def test_a_vamp_prior_is_the_average_of_posteriors_and_is_saved_without_the_encoder(tmp_path):
    vae = VAE(2, prior="vamp", hidden=(4,), max_epochs=1, optimizer="sgd", progress=False, likelihood="gaussian")
    vae.fit(TRAIN[:200])
    prior = vae.generative_.prior
    u = np.asarray(prior.units.loc) + np.asarray(prior.units.scale) * np.asarray(prior.inputs)
    z = np.array([0.3, -0.2], np.float32)
    q = vae.posterior(u.astype(np.float32))
    expected = logsumexp(np.asarray(q.log_prob(z))) - np.log(len(u))
    assert prior().log_prob(z) == pytest.approx(expected, abs=1e-4)
    vae.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").sample(5), vae.sample(5))
