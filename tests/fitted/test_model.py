"""A fitted model is a value: it cannot be changed, and its functions are what the estimator's methods return."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from aevb import VAE
from aevb.fitted import coding, fitted_model, latent_space, likelihoods, restoration, with_rows
from aevb.models import MatrixFormat
from aevb.settings import Arguments

X = np.random.default_rng(0).normal(size=(60, 4)) @ np.random.default_rng(1).normal(size=(4, 4)) + 5
HOLES = np.where(np.random.default_rng(2).random(X.shape) < 0.2, np.nan, X)


@pytest.fixture(scope="module")
def vae():
    return VAE(2, hidden=(8,), likelihood="gaussian", max_epochs=2, optimizer="sgd", progress=False).fit(X)


def test_it_cannot_be_changed(vae):
    with pytest.raises(FrozenInstanceError):
        vae.model_.seed = 1
    with pytest.raises(AttributeError, match="cannot be changed"):
        vae.model_.arguments.latent_dim = 3
    assert replace(vae.model_, seed=1).seed == 1


def test_functions_are_what_the_methods_return(vae):
    model = vae.model_
    assert_array_equal(coding.posterior_means(model, X), vae.transform(X).astype(np.float32))
    assert_array_equal(coding.reconstruct(model, X), vae.reconstruct(X))
    assert_array_equal(coding.sample(model, 3), vae.sample(3))
    assert_array_equal(likelihoods.lower_bound_terms(model, X).lower_bound, vae.score_samples(X).astype(np.float32))
    assert_array_equal(latent_space.manifold(model, 3), vae.manifold(3))
    options = {"method": "importance", "num_samples": 5}
    assert_array_equal(restoration.impute(model, HOLES[:8], **options).mean, vae.impute(HOLES[:8], **options))


def test_attributes_are_facts_of_the_model(vae):
    assert vae.generative_ is vae.model_.generative
    assert vae.history_ is vae.model_.record.history
    assert (vae.latent_dim_, vae.likelihood_, vae.seed_) == (2, "gaussian", vae.model_.seed)
    assert not hasattr(VAE(), "generative_")


def test_an_estimator_stands_for_its_model(vae):
    assert fitted_model(vae) is fitted_model(vae.model_) is vae.model_
    model, rows = with_rows(vae, X.tolist())
    assert model is vae.model_
    assert_array_equal(rows, X)


@pytest.mark.parametrize(
    "format",
    [MatrixFormat(2), MatrixFormat(2, ("a", "b"), 1 / 255, np.array([1e9, 0.0]), from_frame=True)],
    ids=["plain", "full"],
)
def test_a_format_comes_back_from_its_description(format):
    again = MatrixFormat.from_description(format.describe())
    assert again.describe() == format.describe()
    rows = np.array([[1e9 + 3, 2.0]])
    assert_array_equal(again.restore(again.store(rows)[0]), rows)


def test_arguments_have_defaults_and_can_be_replaced():
    arguments = Arguments(hidden=7, prior=object())
    assert arguments.hidden_for(is_table=False) == (7,)
    assert Arguments().hidden_for(is_table=False) == (500,)
    assert arguments.own_parts == ["prior"]
    assert Arguments(prior="mixture").own_parts == []
    assert arguments.replaced(latent_dim=9).latent_dim == 9
    with pytest.raises(AttributeError, match="there is no argument 'depth'"):
        _ = arguments.depth
