"""Priors by name: learning, files, tasks, the report and the page."""

import json

import numpy as np
import pytest

from aevb import VAE, load
from aevb.explorer.model import describe
from aevb.models import MixturePrior

RNG = np.random.default_rng(0)
CLUSTERS = np.array([[-3.0, 0.0, 1.0], [3.0, 1.0, -1.0]])[RNG.integers(2, size=80)] + 0.3 * RNG.normal(size=(80, 3))
SHORT = {"hidden": (16,), "progress": False, "max_epochs": 2}


@pytest.fixture(scope="module")
def mixture():
    return VAE(1, prior="mixture", **SHORT).fit(CLUSTERS)


def test_a_mixture_is_learned_saved_and_used(mixture, tmp_path):
    assert (mixture.prior_, mixture.estimator_) == ("mixture", "sgvb-a")
    prior = mixture.generative_.prior
    assert isinstance(prior, MixturePrior)
    assert abs(np.asarray(prior.shifts)).max() > 0
    same = load(mixture.save(tmp_path / "model"))
    assert same.prior_ == "mixture"
    np.testing.assert_array_equal(same.sample(20), mixture.sample(20))
    np.testing.assert_array_equal(same.transform(CLUSTERS), mixture.transform(CLUSTERS))
    assert abs(mixture.sample(200)[:, 0]).min() > 1  # nothing is drawn between the clusters


@pytest.mark.thorough
def test_small_tables_get_a_mixture_where_there_are_clusters():
    assert VAE(1, **SHORT).fit(CLUSTERS).prior_ == "mixture"
    assert VAE(1, prior="standard", **SHORT).fit(CLUSTERS).prior_ == "standard"
    assert VAE(1, **SHORT).fit(RNG.normal(size=(80, 3))).prior_ == "standard"


@pytest.mark.thorough
def test_the_page_has_the_mixture(mixture):
    found = json.loads(json.dumps(describe(mixture.model_)))["prior"]
    np.testing.assert_allclose(np.exp(found["log_weights"]).sum(), 1, rtol=1e-5)
    np.testing.assert_allclose(np.matmul(found["scale"], found["whitening"])[0], np.eye(1), atol=1e-5)
    assert describe(VAE(1, prior="standard", **SHORT).fit(CLUSTERS).model_)["prior"] is None


@pytest.mark.thorough
@pytest.mark.parametrize("learner", ["full-vb", "wake-sleep", "mcem"])
def test_other_learners_learn_a_mixture(learner):
    vae = VAE(2, prior="mixture", learner=learner, **SHORT).fit(CLUSTERS)
    assert vae.sample(5).shape == (5, 3)
    assert vae.prior_ == "mixture"


@pytest.mark.thorough
def test_a_mixture_without_a_linear_start(tmp_path):
    """Binary rows: the components start apart, and are learned."""
    X = (RNG.random((100, 6)) < 0.5).astype(np.float32)
    vae = VAE(2, prior="mixture", **SHORT).fit(X)
    assert vae.generative_.prior.shifts.shape == (10, 2)
    assert load(vae.save(tmp_path / "model")).prior_ == "mixture"
    vae.partial_fit(X)
    assert VAE(2, prior="mixture", **SHORT).partial_fit(X).prior_ == "mixture"
