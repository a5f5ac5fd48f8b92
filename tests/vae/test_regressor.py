"""`VAERegressor`: what it predicts, saves and refuses."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from aevb import VAERegressor, load

pytestmark = pytest.mark.filterwarnings("ignore:.*k-hat is above")
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (2000, 2))
SIDE = RNG.choice([-1.0, 1.0], 2000)  # two modes, whose distance and width depend on x
Y = SIDE * (2 + X[:, 0]) + (0.1 + 0.2 * (X[:, 1] > 0)) * RNG.normal(size=2000)
SMALL = {"hidden": (8,), "max_epochs": 1, "num_samples": 2, "optimizer": "sgd", "progress": False}


def log_density(x, y):
    """Return the exact log p(y|x)."""
    std = 0.1 + 0.2 * (x[:, 1] > 0)
    modes = [-((y - side * (2 + x[:, 0])) ** 2) / (2 * std**2) - np.log(std) for side in (-1, 1)]
    return np.logaddexp(*modes) - np.log(2) - np.log(2 * np.pi) / 2


@pytest.fixture(scope="module")
def fitted():
    return VAERegressor(hidden=(30,), max_epochs=300, parameter_prior=None, progress=False).fit(X, Y)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*k-hat is above")
def test_two_modes_are_recovered(fitted):
    """A Gaussian with the exact mean 0 and variance would reach -2.1 nats; the exact density has about -0.6."""
    exact, found = log_density(X, Y).mean(), fitted.log_prob(X, Y, num_samples=200)
    assert exact - 0.25 < found.values.mean() < exact + 0.1
    assert found.std_errors.shape == (2000,)
    draws = fitted.sample(X[:100], 50)
    assert draws.shape == (50, 100)
    # Between the modes: exactly none, a Gaussian with the same moments 19%. A continuous z leaves a bridge; seen: 3.1%.
    assert np.mean(np.abs(draws) < 0.5) < 0.19 / 4


@pytest.mark.thorough
def test_intervals_contain_their_share(fitted):
    low, high = fitted.predict_interval(X, level=0.8).T
    assert np.mean((low < Y) & (high > Y)) == pytest.approx(0.8, abs=0.06)
    assert fitted.predict_quantiles(X[:5], (0.1, 0.5, 0.9)).shape == (5, 3)
    assert np.abs(fitted.predict(X)).mean() < 0.5
    np.testing.assert_array_equal(fitted.predict(X[:7]), fitted.predict(X)[:7])  # whatever the other rows are


@pytest.mark.thorough
def test_a_saved_model_is_the_same(fitted, tmp_path):
    again = load(fitted.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(X[:20]), fitted.predict(X[:20]))
    np.testing.assert_array_equal(again.sample(X[:5], 3), fitted.sample(X[:5], 3))
    again.partial_fit(X[:100], Y[:100])
    assert len(again.history_) == len(fitted.history_) + 1


@pytest.mark.thorough
def test_rows_without_a_target_are_not_used():
    """They count only for the units of X."""
    holes = np.where(np.arange(2000) % 4 == 0, np.nan, Y)
    setting = {**SMALL, "validation_fraction": 0}
    known = VAERegressor(**setting).fit(X[~np.isnan(holes)], Y[~np.isnan(holes)])
    model = VAERegressor(**setting).fit(X, holes)
    assert model.history_[0]["samples"] == known.history_[0]["samples"] == 1500
    np.testing.assert_allclose(model.predict(X[:9]), known.predict(X[:9]), atol=0.05)


@pytest.mark.thorough
def test_several_targets_and_mixed_inputs():
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "high", "low")})
    targets = pd.DataFrame({"one": Y, "two": np.where(RNG.random(2000) < 0.3, np.nan, X[:, 0])})
    model = VAERegressor(**SMALL).fit(frame, targets)
    assert model.n_outputs_ == 2
    assert model.predict(frame[:4]).shape == (4, 2)
    assert model.predict_interval(frame[:4]).shape == (4, 2, 2)
    assert model.sample(frame[:4], 3).shape == (3, 4, 2)
    assert np.isfinite(model.log_prob(frame[:4], targets[:4], num_samples=50).values).all()


@pytest.mark.thorough
def test_columns_that_are_left_out_are_named():
    frame = pd.DataFrame({"a": X[:, 0], "customer_id": np.arange(2000) * 7 + 1000})
    with pytest.warns(
        UserWarning, match="does not learn 1 of 2 columns: 'customer_id' is .* To learn from one, convert"
    ):
        VAERegressor(**SMALL).fit(frame, Y)


@pytest.mark.thorough
def test_a_positive_target_stays_positive():
    model = VAERegressor(**SMALL, likelihood="lognormal").fit(X, np.exp(Y))
    assert (model.sample(X[:20], 10) > 0).all()
    assert (model.predict(X[:20]) > 0).all()


@pytest.mark.thorough
def test_an_interrupted_run_is_resumed(tmp_path):
    whole = VAERegressor(**{**SMALL, "max_epochs": 3}).fit(X, Y)
    VAERegressor(**SMALL).fit(X, Y, checkpoint=tmp_path)
    resumed = VAERegressor(**{**SMALL, "max_epochs": 3}).fit(X, Y, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.predict(X[:5]), whole.predict(X[:5]))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "the target y is None"),
        (Y[:10], "y has 10 rows, but X has 2,000"),
        (np.full(2000, np.nan), "y is empty: all entries are missing"),
        (np.ones(2000), "y is constant: every entry is 1.0"),
        (np.array(["a", "b"])[(Y > 0).astype(int)], "y holds text.* Use VAEClassifier"),
        (np.where(np.arange(2000) == 3, np.inf, Y), "infinity is not allowed"),
    ],
    ids=["none", "short", "unlabeled", "constant", "text", "infinite"],
)
def test_targets_that_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        VAERegressor(**SMALL).fit(X, y)


@pytest.mark.thorough
def test_targets_that_are_nan_are_left_out_of_the_density():
    targets = np.stack([Y, X[:, 0]], axis=1)
    model = VAERegressor(**SMALL).fit(X, targets)
    some = targets[:4].copy()
    some[1, 0], some[2] = np.nan, np.nan
    found, whole = (model.log_prob(X[:4], y, num_samples=500) for y in (some, targets[:4]))
    np.testing.assert_allclose(found.values[[0, 3]], whole.values[[0, 3]], atol=0.1)
    assert abs(found.values[2]) < 5 * found.std_errors[2] + 0.01  # log 1: nothing is observed


@pytest.mark.thorough
@pytest.mark.parametrize("likelihood", ["ordinal", "categorical"])
def test_targets_with_few_values_are_predicted_in_their_units(likelihood, tmp_path):
    """Grades from 3 to 8, not their places from 0 to 5; x says which grade a row has."""
    grades = np.clip(np.rint(5.5 + 2 * X[:, 0]), 3, 8)
    model = VAERegressor(hidden=(20,), max_epochs=60, likelihood=likelihood, progress=False).fit(X, grades)
    assert set(np.unique(model.sample(X[:200], 2))) <= {3, 4, 5, 6, 7, 8}
    low, high = model.predict_interval(X[:200]).T
    assert set(np.unique([low, high])) <= {3, 4, 5, 6, 7, 8}
    assert np.mean((low <= grades[:200]) & (grades[:200] <= high)) > 0.85
    assert model.score(X, grades) > 0.8  # seen: 0.95 and 0.94


@pytest.mark.thorough
def test_unknown_targets_are_left_out_of_the_score(fitted):
    holes = np.where(np.arange(2000) < 500, np.nan, Y)
    assert fitted.score(X, holes) == pytest.approx(fitted.score(X[500:], Y[500:]), abs=1e-12)
    weights = np.where(np.arange(2000) < 1000, 0.0, 1.0)
    assert fitted.score(X, holes, weights) == pytest.approx(fitted.score(X[1000:], Y[1000:]), abs=1e-12)


@pytest.mark.thorough
def test_batches_leave_out_rows_without_a_target():
    model = VAERegressor(**SMALL).fit(X, Y)
    before = model.history_[-1]["samples"]
    model.partial_fit(X[:100], np.where(np.arange(100) < 30, np.nan, Y[:100]))
    assert 60 < model.history_[-1]["samples"] - before <= 70  # in batches of equal sizes
    assert np.isfinite(model.predict(X[:5])).all()


@pytest.mark.slow
@parametrize_with_checks(
    [
        VAERegressor(
            hidden=(),
            max_epochs=60,
            learning_rate=0.05,
            num_samples=2,
            validation_fraction=0,
            parameter_prior=None,
            progress=False,
        )
    ],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "repeated rows are visited in another order",
    },
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.thorough
def test_methods_of_log_prob_agree():
    """Importance sampling lies within 6 standard errors of a grid over both latent variables."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=120)
    model = VAERegressor(latent_dim=2, max_epochs=5, progress=False).fit(X, y)
    sampled, exact = (model.log_prob(X[:8], y[:8], method=method) for method in ("importance", "quadrature"))
    assert (np.abs(sampled.values - exact.values) < 6 * sampled.std_errors + 1e-3).all()
    with pytest.raises(ValueError, match="method='exact'"):
        model.log_prob(X, y, method="exact")
