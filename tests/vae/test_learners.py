"""The other learners through `VAE`, and log-likelihoods of the models that they learn."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from sklearn.datasets import load_breast_cancer

from aevb import VAE, load, tasks
from aevb.inference.result import LogLikelihood
from aevb.models import GenerativeModel, standard_normal
from aevb.training import Source, rowwise

pytestmark = pytest.mark.thorough

RNG = np.random.default_rng(0)
PATTERNS = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
X = (PATTERNS[RNG.integers(2, size=200)] ^ (RNG.random((200, 6)) < 0.1)).astype(np.float32)


def fit(learner, **options):
    setting = {
        "latent_dim": 1,
        "hidden": (8,),
        "max_epochs": 60,
        "batch_size": 20,
        "learning_rate": 0.01,
        "progress": False,
    }
    return VAE(learner=learner, patience=None, **{**setting, **options}).fit(X)


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.slow) for name in ("aevb", "wake-sleep", "full-vb", "mcem")],
)
def vae(request):
    return fit(request.param)


def test_it_learns_the_patterns_in_the_data(vae):
    """Six independent pixels have -4.16 nats; two patterns with a tenth of the bits flipped, about -2.6."""
    estimate = vae.log_likelihood(X, method="quadrature")
    assert -3.1 < np.mean(estimate.values) < -2.4
    codes = vae.transform(X)[:, 0]
    sides = X[:, :3].sum(1) > X[:, 3:].sum(1)
    assert abs(np.corrcoef(codes, sides)[0, 1]) > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*datapoints")  # with so few samples, a few rows are unreliable
def test_methods_agree(vae):
    exact = vae.log_likelihood(X[:50], method="quadrature")
    methods = {"hmc": 300, "ais": 200}
    if vae.recognition_ is not None:
        methods["importance"] = 1000
    for method, num_samples in methods.items():
        estimate = vae.log_likelihood(X[:50], method=method, num_samples=num_samples)
        assert isinstance(estimate, LogLikelihood)
        assert estimate.values.shape == estimate.std_errors.shape == (50,)
        assert abs(np.mean(estimate.values - exact.values)) < 0.05, method


def test_it_is_restored_from_a_file(vae, tmp_path):
    again = load(vae.save(tmp_path / "model"))
    assert again.learner == vae.learner
    np.testing.assert_array_equal(again.inverse_transform([[0.5]]), vae.inverse_transform([[0.5]]))
    if vae.recognition_ is not None:  # with HMC the codes would take long
        np.testing.assert_array_equal(again.transform(X[:5]), vae.transform(X[:5]))


def test_full_vb_saves_its_posterior_and_refuses_unsupported_calls(tmp_path):
    vae = fit("full-vb", max_epochs=2, optimizer="sgd")
    again = load(vae.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.sample(3, mean=True), vae.sample(3, mean=True))
    np.testing.assert_array_equal(again.score_samples(X[:5]), vae.score_samples(X[:5]))
    assert not np.array_equal(vae.inverse_transform([[1.0]])[0], vae.generative_.mean.decoder(jnp.ones(1)).mean)
    with pytest.raises(AttributeError) as error:
        vae.partial_fit(X)
    assert "Call fit(X) with all rows" in str(error.value.__cause__)
    with pytest.raises(ValueError, match=r"estimator \(learner='full-vb'\).*'sgvb-a'"):
        fit("full-vb", estimator="importance")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*datapoints")
def test_full_vb_beats_map_on_small_data():
    """300 rows of 30 real measurements: measured -14.1 against -16.5 nats (bound), -12.9 against -13.9 (log p)."""
    data = load_breast_cancer().data
    data = (data - data.mean(0)) / data.std(0)
    rows = np.random.default_rng(0).permutation(len(data))
    train, test = data[rows[:300]], data[rows[300:]]
    setting = {"latent_dim": 3, "hidden": 50, "batch_size": 50, "validation_fraction": 0, "progress": False}
    by_map = VAE(max_epochs=1000, **setting).fit(train)
    full = VAE(learner="full-vb", learning_rate=3e-3, max_epochs=1500, **setting).fit(train)
    assert full.score(train, num_samples=20) < by_map.score(train, num_samples=20)  # MAP overfits them
    assert full.score(test, num_samples=50) > by_map.score(test, num_samples=50) + 1
    likelihoods = [vae.log_likelihood(test, num_samples=500).mean for vae in (full, by_map)]
    assert likelihoods[0] > likelihoods[1] + 0.5


@pytest.mark.slow
def test_wake_sleep_continues_from_batches():
    vae = fit("wake-sleep", max_epochs=5)
    before = vae.score(X)
    for _ in range(20):
        vae.partial_fit(X)
    assert vae.score(X) > before + 0.05
    assert len(vae.history_) == 25


def test_methods_that_need_an_encoder_say_that_there_is_none():
    vae = fit("mcem", max_epochs=1, optimizer="sgd")
    assert vae.recognition_ is None
    assert set(vae.history_[0]) == {"epoch", "samples", "log_joint", "acceptance", "seconds"}
    with pytest.raises(ValueError, match=r"posterior: needs q\(z\|x\).*no encoder; transform\(X\)"):
        vae.posterior(X)
    for name in ("score", "score_samples", "partial_fit"):
        assert not hasattr(vae, name)
    with pytest.raises(AttributeError) as error:
        vae.score(X)
    assert str(error.value).startswith("score: learner='mcem' has no encoder")
    assert 'log_likelihood(X, method="hmc")' in str(error.value)
    with pytest.raises(ValueError, match=r'method="importance": needs q\(z\|x\).*use method="laplace" or "ais"'):
        vae.log_likelihood(X)
    assert vae.reconstruct(X[:3]).shape == (3, 6)
    with pytest.raises(ValueError, match="partial_fit: needs"):
        vae.set_params(learner="aevb").partial_fit(X)
    with pytest.raises(ValueError, match="encoder: learner='mcem' does not use one"):
        fit("mcem", encoder=lambda x: x)
    with pytest.raises(ValueError, match=r"prior: .*Hybrid Monte Carlo over all real numbers"):
        fit("mcem", prior=dist.Exponential(np.ones(1, np.float32)).to_event(1))


def test_posterior_means_by_hmc_are_exact():
    """Linear-Gaussian: z ~ N(0, 1), x = 2 z + noise of variance 1/2 in each of two columns."""

    class Decoder(eqx.Module):
        def __call__(self, z):
            return dist.Normal(2 * jnp.repeat(z, 2), np.sqrt(0.5)).to_event(1)

    generative = GenerativeModel(standard_normal(1), Decoder())
    x = np.float32([[1, 2], [-3, 0], [0.5, 0.1]])
    key = jax.random.key(0)
    means = rowwise(tasks.posterior_mean_by_hmc, generative, Source(x), np.arange(3), key)[:, 0]
    precision = 1 + 2 * 2**2 / 0.5
    expected = 2 * x.sum(1) / 0.5 / precision
    # 200 samples, here nearly independent: 6 standard errors fail by chance for one seed in 10^8.
    np.testing.assert_allclose(means, expected, atol=6 * np.sqrt(1 / precision / 200))


@pytest.mark.slow
def test_annealing_shows_progress_and_can_be_interrupted(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # treated as a terminal
    vae = fit("mcem", max_epochs=1, progress=True)
    shares = []
    vae.log_likelihood(X[:70], method="ais", num_samples=150, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1, abs=0.1)
    vae.log_likelihood(X[:5], method="ais", num_samples=150)
    assert "annealing" in capfd.readouterr().err

    def interrupt(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vae.log_likelihood(X[:5], method="ais", num_samples=150, progress=interrupt)


@pytest.mark.slow
def test_an_unreliable_estimate_gives_a_warning():
    vae = fit("aevb", max_epochs=1, latent_dim=8)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        estimate = vae.log_likelihood(X[:5], method="hmc", num_samples=50)
    assert "reliable below 5 latent dimensions, but the model has 8" in str(found[0].message)
    assert [str(warning.message) for warning in found] == list(estimate.warnings)
