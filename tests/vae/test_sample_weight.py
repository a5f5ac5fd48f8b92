"""`fit(X, sample_weight=w)` and `score(X, sample_weight=w)`: a row with weight 3 counts as three rows."""

import jax
import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from aevb import VAE
from aevb.data import binarize, training_data
from aevb.models import split

SMALL = {"hidden": (8,), "max_epochs": 2, "optimizer": "sgd", "progress": False}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 6))
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 2.7], size=200)


def small(**arguments):
    return VAE(2, **{**SMALL, **arguments})


def assert_same(one, other):
    arrays = [jax.tree.leaves(split((vae.generative_, vae.recognition_))[:2]) for vae in (one, other)]
    for left, right in zip(*arrays, strict=True):
        np.testing.assert_array_equal(left, right)
    assert [{**row, "seconds": 0} for row in one.history_] == [{**row, "seconds": 0} for row in other.history_]


# ---- what weights mean -----------------------------------------------------------------------------------------------


def test_ones_are_no_weights_and_zeros_leave_out_rows_bit_for_bit():
    plain = small().fit(X[:150])
    assert_same(small().fit(X[:150], sample_weight=np.ones(150)), plain)
    hidden = np.vstack([X[:150], np.full((50, 6), np.nan)])
    assert_same(small().fit(hidden, sample_weight=np.arange(200) < 150), plain)


def test_rows_without_weight_have_no_influence_bit_for_bit():
    used = WEIGHTS > 0
    other = np.where(used[:, None], X, 1e6)
    weighted = small().fit(X[used], sample_weight=WEIGHTS[used])
    assert_same(small().fit(other, None, WEIGHTS), weighted)
    assert small().fit(X[used]).history_ != weighted.history_


# Two kinds of rows with different lines: the weights decide which line the one latent variable follows.
ANGLES = np.repeat([0.3, 1.3], 100)
LINES = RNG.normal(size=(200, 1)) * np.c_[np.cos(ANGLES), np.sin(ANGLES)] + 0.2 * RNG.normal(size=(200, 2)) + [4, -1]
COUNTS = np.repeat([5, 1], 100)
REPEATED = np.repeat(LINES, COUNTS, axis=0)


def log_density(vae):
    """Return the average log p(x) of the repeated rows: without noise, by quadrature."""
    values = vae.log_likelihood(LINES, method="quadrature").values
    return np.average(values, weights=COUNTS)


@pytest.mark.thorough
def test_a_model_of_weighted_rows_is_that_of_repeated_rows():
    """The log densities differ by 0.001 nats, measured; without weights the density is 0.21 nats lower."""
    setting = {"optimizer": "adam", "batch_size": 20, "validation_fraction": 0, "max_epochs": 30, "progress": False}
    # Repeated rows are in several folds of the cross-validation that chooses a prior, which weighted rows are not.
    vae = VAE(1, hidden=(), likelihood="gaussian", prior="standard", **setting)
    weighted = log_density(vae.fit(LINES, sample_weight=COUNTS))
    equal = log_density(vae.fit(LINES))
    repeated = log_density(vae.set_params(max_epochs=10).fit(REPEATED))  # as many steps
    assert abs(weighted - repeated) < 0.01
    assert equal < weighted - 0.1


@pytest.mark.thorough
def test_the_columns_units_are_weighted():
    vae = small(likelihood="gaussian").fit(LINES, sample_weight=COUNTS)
    units = vae.generative_.decoder.units
    np.testing.assert_allclose(units.loc, REPEATED.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(units.scale, REPEATED.std(axis=0), rtol=1e-5)


@pytest.mark.thorough
def test_the_prior_is_compared_with_the_sum_of_the_weights():
    """With equal visits and larger weights, the weights of the networks shrink less."""
    setting = {"optimizer": "adam", "init": "glorot", "validation_fraction": 0, "max_epochs": 20}
    sizes = []
    for factor in (1, 1000):
        vae = small(**setting).fit(X, sample_weight=factor * (WEIGHTS + 0.1))
        sizes.append(sum(float((array**2).sum()) for array in jax.tree.leaves(split(vae.generative_).parameters)))
    assert sizes[1] > 1.02 * sizes[0]


@pytest.mark.thorough
def test_the_posterior_of_the_networks_weights_counts_the_sum_of_the_weights():
    """The bound contains the cost of the networks' weights, divided by N."""
    setting = {"learner": "full-vb", "optimizer": "adam", "validation_fraction": 0}
    bounds = [
        small(**setting).fit(X, sample_weight=factor * (WEIGHTS + 0.1)).history_[0]["lower_bound"]
        for factor in (1, 2, 4)
    ]
    np.testing.assert_allclose(bounds[2] - bounds[1], (bounds[1] - bounds[0]) / 2, rtol=0.05)
    assert bounds[1] > bounds[0]


def test_score_is_a_weighted_mean():
    vae = small().fit(X)
    np.testing.assert_allclose(vae.score(X, sample_weight=WEIGHTS), np.average(vae.score_samples(X), weights=WEIGHTS))
    assert vae.score(X, None, np.ones(200)) == pytest.approx(vae.score(X))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\), not \(200,\)"):
        vae.score(X, sample_weight=[1, 2, 3])


@pytest.mark.thorough
def test_the_held_out_bound_and_the_refit_follow_the_weights():
    """With all defaults; the refit uses all rows with weights."""
    vae = VAE(1, hidden=(), likelihood="gaussian", progress=False).fit(LINES, sample_weight=COUNTS)
    assert vae.refit_epochs_ is not None
    assert log_density(vae) > log_density(VAE(1, hidden=(), likelihood="gaussian", progress=False).fit(LINES)) + 0.1


@pytest.mark.thorough
@pytest.mark.parametrize("draws", ["threshold", "dynamic"])
def test_binary_draws_have_weights(draws):
    """Nearly all weight is on dark images: the model samples dark images."""
    levels = np.repeat([0.05, 0.95], 100)[:, None] * np.ones(8)
    weights = np.repeat([1.0, 0.001], 100)
    data = binarize(levels, draws) if draws == "dynamic" else (RNG.random((200, 8)) < levels).astype(np.float32)
    setting = {"optimizer": "adam", "learning_rate": 0.01, "max_epochs": 30, "batch_size": 20}
    vae = small(**setting).fit(data, sample_weight=weights)
    assert vae.sample(500, random_state=0).mean() < 0.2
    assert vae.history_[-1]["validation_lower_bound"] > -4  # log 2 for each of 8 columns is 5.5


@pytest.mark.thorough
def test_a_step_size_is_chosen_and_latent_variables_are_counted_with_weights():
    assert small(optimizer="adagrad").fit(X, sample_weight=WEIGHTS).learning_rate_ in (0.01, 0.02, 0.1)
    found = VAE("auto", hidden=(), max_epochs=1, progress=False).fit(X[:, :2], sample_weight=WEIGHTS)
    assert found.latent_dim_ in (1, 2)


# ---- runs, tools and refusals ----------------------------------------------------------------------------------------


def test_a_run_with_weights_resumes_and_other_weights_are_another_run(tmp_path):
    small(max_epochs=1).fit(X, sample_weight=WEIGHTS, checkpoint=tmp_path)
    again = small(max_epochs=3).fit(X, sample_weight=WEIGHTS, checkpoint=tmp_path)
    assert_same(again, small(max_epochs=3).fit(X, sample_weight=WEIGHTS))
    for other in (None, WEIGHTS + (WEIGHTS > 1)):
        with pytest.raises(ValueError, match="belongs to another run: its data"):
            small(max_epochs=3).fit(X, sample_weight=other, checkpoint=tmp_path)


def test_files_in_memory_have_weights(tmp_path):
    np.save(tmp_path / "X.npy", X)
    assert_same(small().fit(tmp_path / "X.npy", sample_weight=WEIGHTS), small().fit(X, sample_weight=WEIGHTS))


def test_bad_values_are_named_by_their_row():
    bad = X.copy()
    bad[150, 2] = np.inf
    with pytest.raises(ValueError, match=r"row 150, column 2 is inf"):
        small().fit(bad, sample_weight=(np.arange(200) > 100) * 2.0)


@pytest.mark.thorough
def test_scikit_learn_routes_weights():
    pipeline = make_pipeline(MinMaxScaler(), small())
    pipeline.fit(X, vae__sample_weight=WEIGHTS)
    with sklearn.config_context(enable_metadata_routing=True):
        vae = small(max_epochs=1).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(vae, {"learning_rate": [1e-6]}, cv=2, error_score="raise")
        search.fit(X, sample_weight=WEIGHTS)
    assert np.isfinite(search.best_score_)
    assert_same(search.best_estimator_, small(max_epochs=1, learning_rate=1e-6).fit(X, sample_weight=WEIGHTS))


@pytest.mark.parametrize("arguments", [{"learner": "mcem"}, {"amortized": False}])
def test_learners_with_a_state_for_each_row_refuse_weights(arguments):
    with pytest.raises(ValueError, match=r"sample_weight: .* stores a state for each row, and visits all rows"):
        small(**arguments).fit(X, sample_weight=WEIGHTS)


def test_data_that_are_not_in_memory_refuse_weights(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="sample_weight: needs rows in memory, but batches are not kept"):
        small().fit(iter([X]), sample_weight=WEIGHTS)
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr(training_data, "IN_MEMORY_BYTES", 1000)
    with pytest.raises(ValueError, match="sample_weight: needs rows in memory, but these are read in pieces"):
        small().fit(tmp_path / "X.npy", sample_weight=WEIGHTS)


def test_a_refused_fit_changes_nothing():
    vae = small()
    with pytest.raises(ValueError, match="sample_weight: row 0 has -1"):
        vae.fit(X, sample_weight=np.r_[-1.0, np.ones(199)])
    assert not hasattr(vae, "n_features_in_")
