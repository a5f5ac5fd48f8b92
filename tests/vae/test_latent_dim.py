"""`VAE(latent_dim="auto")`."""

import io
import pickle
from contextlib import redirect_stderr

import numpy as np
import pytest
from sklearn.base import clone

from aevb import VAE, load
from aevb.vae import fitting

pytestmark = pytest.mark.thorough

SMALL = {"latent_dim": "auto", "hidden": (), "max_epochs": 2}  # with the linear start it begins as factor analysis


def factor_data(seed, num_rows=300, data_dim=8, num_factors=3):
    rng = np.random.Generator(np.random.PCG64(seed))
    weight = rng.normal(size=(num_factors, data_dim))
    return rng.normal(size=(num_rows, num_factors)) @ weight + 0.5 * rng.normal(size=(num_rows, data_dim))


X = factor_data(0, num_rows=60, data_dim=3, num_factors=1)  # 1 and 2 are tried
THREE = factor_data(0)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return tmp_path_factory.mktemp("checkpoint")


@pytest.fixture(scope="module")
def fitted(checkpoint):
    """Return a model of data with one factor, and what fitting it printed."""
    with redirect_stderr(io.StringIO()) as printed:
        vae = VAE(**SMALL).fit(X, checkpoint=checkpoint)
    return vae, printed.getvalue()


@pytest.mark.thorough
def test_one_factor_is_found(fitted):
    """Seed 0; the tests below have more factors and seeds."""
    vae, _ = fitted
    assert vae.latent_dim_ == 1
    assert [row["latent_dim"] for row in vae.latent_dim_search_] == [1, 2]
    assert vae.latent_dim_search_[0]["below_best"] <= 2 * vae.latent_dim_search_[0]["std_error"]
    assert vae.transform(X[:5]).shape == (5, 1)


@pytest.mark.thorough
def test_three_factors_are_found():
    """Seed 0; the slow test has more seeds."""
    vae = VAE(**SMALL, progress=False).fit(THREE)
    assert vae.latent_dim_ == 4  # of 1, 2, 4 and 8
    assert [row["latent_dim"] for row in vae.latent_dim_search_] == [1, 2, 4, 8]
    one, two, four, _ = (row["below_best"] / (row["std_error"] or 1) for row in vae.latent_dim_search_)
    assert one > two > 2 >= four


def test_the_choice_is_printed(fitted):
    vae, printed = fitted
    one, two = (f"{row['validation_lower_bound']:.2f}" for row in vae.latent_dim_search_)
    assert f"latent_dim: 1 (held-out bound {one}; with 2: {two}, in nats per row)\n" in printed


def test_the_argument_is_unchanged(fitted):
    vae, _ = fitted
    assert vae.get_params()["latent_dim"] == "auto"
    assert clone(vae).latent_dim == "auto"
    assert not hasattr(clone(vae), "latent_dim_")


def test_saved_and_pickled_models_keep_the_chosen_number(fitted, tmp_path):
    vae, _ = fitted
    for again in (load(vae.save(tmp_path / "model")), pickle.loads(pickle.dumps(vae))):
        assert again.latent_dim == "auto"
        assert (again.latent_dim_, again.latent_dim_search_) == (1, vae.latent_dim_search_)
        assert list(again.get_feature_names_out()) == ["vae0"]
        np.testing.assert_array_equal(again.transform(X[:5]), vae.transform(X[:5]))


@pytest.mark.thorough
def test_a_resumed_run_does_not_search_again(fitted, checkpoint, monkeypatch):
    vae, _ = fitted
    monkeypatch.setattr(fitting, "search_latent_dim", None)
    again = VAE(**SMALL, progress=False).set_params(max_epochs=3).fit(X, checkpoint=checkpoint)
    assert (again.latent_dim_, again.latent_dim_search_) == (1, vae.latent_dim_search_)
    assert again.history_[:2] == vae.history_
    assert len(again.history_) == 3


def test_a_given_number_is_stored_too():
    vae = VAE(latent_dim=np.int64(1), hidden=(), max_epochs=1, progress=False).fit(X)
    assert (vae.latent_dim_, vae.latent_dim_search_) == (1, [])
    vae.set_params(latent_dim=3)  # for the next fit
    assert vae.transform(X[:5]).shape == (5, 1)
    assert list(vae.get_feature_names_out()) == ["vae0"]


@pytest.mark.parametrize(
    ("arguments", "data", "words"),
    [
        ({"validation_fraction": 0}, X, "there are none: validation_fraction=0. Give a number, a larger"),
        ({}, X[:15], "there are none: too few rows to hold some out. Give a number"),
        ({}, iter([X]), "needs held-out rows, and batches have none. Give a number."),
    ],
)
def test_without_held_out_rows_it_is_refused(arguments, data, words):
    vae = VAE(**SMALL, **arguments, progress=False)
    with pytest.raises(ValueError, match="latent_dim='auto'") as error:
        vae.fit(data)
    assert words in str(error.value)
    assert not hasattr(vae, "latent_dim_")


def test_batches_are_refused_before_training():
    with pytest.raises(
        ValueError, match=r"partial_fit: latent_dim='auto' needs held-out rows\. Give a number, or call"
    ):
        VAE(**SMALL).partial_fit(X)


@pytest.mark.thorough
def test_a_fitted_model_learns_from_batches(fitted):
    vae = pickle.loads(pickle.dumps(fitted[0]))
    assert vae.partial_fit(X[:50]).latent_dim_ == 1
    assert len(vae.history_) == len(fitted[0].history_) + 1


def test_an_interrupted_search_keeps_nothing(monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("aevb.training.loop.run_chunk", interrupted)
    vae = VAE(**SMALL, progress=False)
    with redirect_stderr(io.StringIO()) as printed, pytest.raises(KeyboardInterrupt):
        vae.fit(X)
    assert printed.getvalue() == ""
    assert not hasattr(vae, "latent_dim_")


@pytest.mark.thorough
def test_a_simplex_has_at_least_two_dimensions():
    vae = VAE(**SMALL, posterior="dirichlet", progress=False).fit(X)
    assert [row["latent_dim"] for row in vae.latent_dim_search_] == [2]


@pytest.mark.thorough
def test_with_given_validation_data_and_with_files_larger_than_memory(tmp_path, monkeypatch):
    vae = VAE(**SMALL, validation_fraction=0, progress=False).fit(THREE, validation_data=factor_data(0, 400)[300:])
    assert vae.latent_dim_ == 4
    monkeypatch.setattr("aevb.data.training_data.IN_MEMORY_BYTES", 0)
    np.save(tmp_path / "x.npy", THREE)
    assert VAE(**SMALL, progress=False).fit(tmp_path / "x.npy").latent_dim_ == 4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No latent variable is active")  # correct for independent columns
def test_defaults_find_three_factors_and_one_variable_for_noise():
    """All defaults, seeds 0 to 4: 2 to 4 latent variables for three factors, 1 for independent columns.

    Independent columns fail when both variables of J = 2 are active, and J = 2 is better by more than two standard
    errors: at most once in forty if the differences were normal with mean 0.
    """
    for seed in range(5):
        vae = VAE("auto", random_state=seed, progress=False).fit(factor_data(seed, 400, 10))
        assert vae.latent_dim_ in (2, 3, 4)
        noise = np.random.Generator(np.random.PCG64(seed)).normal(size=(300, 6))
        assert VAE("auto", random_state=seed, progress=False).fit(noise).latent_dim_ == 1
