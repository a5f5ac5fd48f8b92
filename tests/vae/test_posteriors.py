"""Every family of q(z|x) through `VAE`, one row per family; and q(z) without an encoder.

Averages of draws are compared within 6 standard errors: each comparison fails by chance for one seed in 10^8.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_digits

from aevb import VAE, load
from aevb.estimators import sgvb_a
from aevb.inference.marginal_likelihood import log_likelihood
from aevb.models import POSTERIORS, RecognitionModel, split, standard_models
from aevb.networks import initialize

pytestmark = pytest.mark.thorough

X = (load_digits().data / 16).astype(np.float32)
WITH_KL = {"gaussian", "full-gaussian", "gamma", "weibull", "beta", "dirichlet"}
QUICK = {"flow", "dirichlet"}  # the others use the same code paths


def each_family_but(*slow):
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in slow)) for name in POSTERIORS]
    )


each_family = each_family_but(*set(POSTERIORS) - QUICK)


def small(**options):
    setting = {"hidden": (20,), "max_epochs": 4, "learning_rate": 5e-3, "progress": False, "validation_fraction": 0}
    return VAE(3, **{**setting, **options})


@each_family_but(*set(POSTERIORS) - {"flow"})
def test_it_learns_digits_and_is_restored_from_a_file(name, tmp_path):
    vae = small(posterior=name, init="glorot").fit(X)  # the default start is the mean, close to what four epochs reach
    bounds = [row["lower_bound"] for row in vae.history_]
    assert bounds == sorted(bounds)
    assert bounds[-1] > bounds[0] + 3
    assert vae.estimator_ == ("sgvb-b" if name in WITH_KL else "sgvb-a")
    q = vae.posterior(X[:7])
    assert (q.batch_shape, q.event_shape) == ((7,), (3,))

    @jax.jit
    def draw(q):
        z = q.sample(jax.random.key(0), (2000,))
        return z, q.log_prob(z)

    draws, log_prob = map(np.asarray, draw(q))
    assert draws.shape == (2000, 7, 3)
    # The mean of a flow is itself estimated from 500 pairs of draws.
    error = draws.std(0) * np.sqrt(1 / 2000 + (name == "flow") / 500)
    assert (abs(draws.mean(0) - vae.transform(X[:7])) < 6 * error).all()
    # Each row has its own noise.
    assert abs(np.corrcoef(draws[:, 0, 0], draws[:, 1, 0])[0, 1]) < 6 / np.sqrt(2000)
    assert np.isfinite(log_prob).all()
    assert vae.sample(2).shape == (2, 64)
    again = load(vae.save(tmp_path / "model"))
    assert again.estimator_ == vae.estimator_
    np.testing.assert_array_equal(again.transform(X[:5]), vae.transform(X[:5]))


@pytest.mark.slow
@each_family
def test_wake_sleep_learns_with_it(name):
    history = small(posterior=name, learner="wake-sleep").fit(X).history_
    assert history[-1]["lower_bound"] > history[0]["lower_bound"] + 1


@pytest.mark.slow
@each_family
def test_gradients_are_finite_at_hard_outputs(name):
    generative, recognition = initialize(standard_models(6, 3, (5,), "bernoulli", posterior=name), jax.random.key(0))
    x = jnp.ones(6)
    noise = recognition.noise(x).sample(jax.random.key(1), (4,))

    @jax.jit
    def bound(outputs):
        encoder = eqx.tree_at(lambda encoder: encoder.network.layers[-1].bias, recognition.encoder, outputs)
        return jax.value_and_grad(lambda e: sgvb_a(generative, RecognitionModel(e), x, noise))(encoder)

    ones = jnp.ones_like(recognition.encoder.network.layers[-1].bias)
    for outputs in (25 * ones, -25 * ones, 25 * ones.at[::2].set(-1), 25 * ones.at[1::2].set(-1)):
        value, gradient = bound(outputs)
        assert np.isfinite(value)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


@each_family
def test_equal_models_have_equal_skeletons_and_start_near_the_prior(name):
    one, other = (
        initialize(standard_models(6, 3, (5,), "bernoulli", posterior=name), jax.random.key(k)) for k in (0, 1)
    )
    assert split(one).skeleton == split(other).skeleton
    assert hash(split(one).skeleton) == hash(split(other).skeleton)
    zeros = standard_models(6, 3, (5,), "bernoulli", posterior=name)
    z = jnp.array([0.2, 0.5, 0.3])  # inside every support
    log_q, log_p = jax.jit(lambda p, q: (q(jnp.ones(6)).log_prob(z), p.latent_distribution().log_prob(z)))(*zeros)
    np.testing.assert_allclose(log_q, log_p, atol=1e-5)


def test_methods_that_need_the_real_line_refuse_a_positive_prior():
    models = standard_models(64, 2, (5,), "bernoulli", posterior="gamma")
    for method in ("hmc", "ais", "quadrature"):
        with pytest.raises(ValueError, match=r"needs a z that may be any real vector.*Use method=\"importance\""):
            log_likelihood(*models, X[:3], jax.random.key(0), method=method, num_samples=10)
    with pytest.raises(ValueError, match="prior: without an encoder z is sampled by Hybrid Monte Carlo"):
        small(posterior="gamma", learner="mcem").fit(X)


@pytest.mark.slow
def test_without_an_encoder_each_row_has_its_own_q(tmp_path):
    """Two Gaussian causes of six columns; the search finds nearly the best q of each row."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.5 * rng.normal(size=(200, 6))
    setting = {"hidden": (16,), "max_epochs": 60, "batch_size": 50, "learning_rate": 0.01, "validation_fraction": 0}
    vae = VAE(2, amortized=False, progress=False, **setting).fit(Y)
    assert vae.history_[-1]["lower_bound"] > vae.history_[0]["lower_bound"] + 1
    rows = Y[:20]
    gap = vae.log_likelihood(rows, method="quadrature").values.mean() - vae.score(rows, num_samples=100)
    assert 0 < gap < 0.15  # out of reach for a diagonal Gaussian; 0.06 was measured
    again = load(vae.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.transform(rows), vae.transform(rows))


def test_settings_that_need_an_encoder_are_refused_without_one():
    assert not hasattr(VAE(amortized=False), "partial_fit")
    for arguments, words in (
        ({"learner": "wake-sleep"}, "amortized=False needs learner='aevb'"),
        ({"encoder": lambda x: x}, "encoder: amortized=False does not use one"),
        ({"amortized": "no"}, "amortized='no' must be True or False"),
    ):
        with pytest.raises(ValueError, match=words):
            VAE(**{"amortized": False, **arguments}).fit(X)
