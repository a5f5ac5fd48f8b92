"""Hierarchies by `VAE(latent_dim=(…))`: everything that other models do."""

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from aevb import VAE, load

X = (np.random.default_rng(0).random((300, 16)) < 0.4).astype(np.float32)
FORMS = ["ladder", pytest.param("bottom-up", marks=pytest.mark.slow)]


def make(hierarchy, **options):
    options = {"max_epochs": 2, "batch_size": 100, "hidden": (8,), "optimizer": "sgd", "learning_rate": 0.01} | options
    return VAE((4, 2), hierarchy=hierarchy, progress=False, validation_fraction=0.2, **options)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:at .* k-hat")
@pytest.mark.parametrize("hierarchy", FORMS)
def test_a_hierarchy_is_learned_saved_and_used(hierarchy, tmp_path):
    vae = make(hierarchy).fit(X)
    row = vae.history_[-1]
    assert row["kl_divergence_1"] + row["kl_divergence_2"] == pytest.approx(row["kl_divergence"], rel=1e-5)
    assert row["validation_kl_divergence_1"] + row["validation_kl_divergence_2"] == pytest.approx(
        row["validation_kl_divergence"], rel=1e-5
    )
    Z = vae.transform(X)
    assert Z.shape == (300, 6)
    assert vae.latent_dim_ == 6
    assert vae.inverse_transform(Z).shape == (300, 16)
    assert set(np.unique(vae.sample(20))) <= {0, 1}
    q = vae.posterior(X[:5])
    np.testing.assert_allclose(q.mean, Z[:5], rtol=1e-5, atol=1e-6)
    draws = q.sample(jax.random.key(0), (2000,))  # 5 standard errors of the level that is drawn first
    first = slice(4, 6) if hierarchy == "ladder" else slice(4)
    error = np.sqrt(np.asarray(q.variance) / 2000)
    assert (np.abs(draws.mean(0) - Z[:5]) < 5 * error)[:, first].all()
    assert q.log_prob(draws).shape == (2000, 5)
    estimate = vae.log_likelihood(X[:20], num_samples=500)
    assert (vae.score_samples(X[:20], num_samples=200) < estimate.values + 1).all()

    vae.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X), Z)
    assert again.latent_dim == (4, 2)
    assert again.score(X) == vae.score(X)
    (path,) = (tmp_path / "model").glob("*.safetensors")
    assert any("prior.lower" in name for name in load_file(path))
    assert not any("encoder.prior" in name for name in load_file(path))  # what a ladder shares is saved once


@pytest.mark.slow
@pytest.mark.parametrize("hierarchy", ["ladder", "bottom-up"])
def test_a_hierarchy_resumes(hierarchy, tmp_path):
    make(hierarchy).fit(X, checkpoint=tmp_path / "checkpoint")
    longer = make(hierarchy, max_epochs=3).fit(X, checkpoint=tmp_path / "checkpoint")
    whole = make(hierarchy, max_epochs=3).fit(X)
    np.testing.assert_array_equal(longer.transform(X), whole.transform(X))
    whole.partial_fit(X[:100])


@pytest.mark.slow
def test_free_bits_leave_small_divergences_alone():
    """With more free bits than there is divergence, the KL term is constant: the encoder learns to copy x."""
    free = make("ladder", free_bits=50.0, max_epochs=5, optimizer="adam").fit(X)
    plain = make("ladder", max_epochs=5, optimizer="adam").fit(X)
    assert free.history_[-1]["kl_divergence"] > 2 * plain.history_[-1]["kl_divergence"]
    row = free.history_[-1]
    assert row["lower_bound"] == pytest.approx(row["reconstruction"] - row["kl_divergence"], rel=1e-5)
