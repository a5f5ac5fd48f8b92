"""The reports of conditional models, classifiers and regressors; and what they measure, against exact answers."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_digits

from aevb import VAE, VAEClassifier, VAERegressor
from aevb.data.label_data import LabelData, stored_rows
from aevb.models import Datapoint
from aevb.report import write_report
from aevb.report.calibration import Panel, plot_panels, plot_reliability
from aevb.report.label_baselines import label_shares, without_inputs_labels
from aevb.report.label_columns import draw_columns
from aevb.report.label_measures import (
    _classifier,
    probability_transforms,
    reliability,
    share_interval,
    uniformity_error,
)

RNG = np.random.default_rng(0)
X, Y = load_digits(return_X_y=True)
X = (X[:300] / 16).astype(np.float32)
Y = Y[:300]
SMALL = {"hidden": (8,), "max_epochs": 1, "optimizer": "sgd", "progress": False}


def test_right_probabilities_are_calibrated_and_others_are_not():
    # 4,000 rows: the error of right ones is near its expectation by chance; the range is four standard deviations of
    # 200 simulations: one false alarm in 10,000.
    probabilities = RNG.dirichlet(np.full(3, 0.7), 4000)
    places = np.array([RNG.choice(3, p=row) for row in probabilities])
    found = reliability(probabilities, places)
    assert found.error < found.by_chance + 0.015
    assert found.counts.sum() == 4000
    sharpened = probabilities**3 / (probabilities**3).sum(axis=1, keepdims=True)
    assert reliability(sharpened, places).error > 0.1


def test_probability_transforms_of_right_draws_are_uniform():
    # 2,000 rows: sqrt(n) times the distance has a mean of 0.31 and exceeds 1.1 less than once in 10^5 times.
    scale = np.exp(RNG.normal(size=(2000, 1)))
    values, draws = scale * RNG.normal(size=(2000, 1)), scale * RNG.normal(size=(400, 2000, 1))
    assert uniformity_error(probability_transforms(draws, values)[:, 0]) < 0.025
    assert uniformity_error(probability_transforms(0.5 * draws, values)[:, 0]) > 0.05  # too narrow
    assert probability_transforms(np.zeros((5, 1, 1)), np.zeros((1, 1))).item() == 0.5  # ties


def read(folder):
    text = (folder / "report.html").read_text(encoding="utf-8")
    return text, json.loads((folder / "metrics.json").read_text(encoding="utf-8"))


@pytest.mark.thorough
def test_the_report_of_a_classifier_of_images(tmp_path):
    model = VAEClassifier(latent_dim=2, **SMALL).fit(X[:250], np.where(np.arange(250) % 2, Y[:250], -1))
    folder = tmp_path / "held-out"
    write_report(
        model, X[250:], folder, y=Y[250:], X_train=X[:250], y_train=Y[:250], image_shape=(8, 8), title="Digits"
    )
    text, metrics = read(folder)
    assert metrics["held_out"]
    assert metrics["judged_by"] == "held-out"
    assert metrics["rows"] == 50
    assert metrics["accuracy"] == pytest.approx(np.mean(model.predict(X[250:]) == Y[250:]))
    shares = np.bincount(Y[:250]) / 250  # of the training rows
    assert metrics["without_inputs"]["log_loss"] == pytest.approx(-np.log(shares[Y[250:]]).mean())
    assert metrics["without_inputs"]["accuracy"] == np.mean(Y[250:] == shares.argmax())
    assert f"predicting the label frequencies of the training rows: {metrics['without_inputs']['log_loss']:.2f}" in text
    assert "expected calibration error" in text
    assert "Judged by training rows" not in text
    for name in ("reliability", "confusion", "samples", "learning_curve"):
        assert (folder / f"{name}.png").stat().st_size > 5000
    assert (folder / "explorer.html").exists()


@pytest.mark.thorough
def test_without_held_out_labels_a_classifier_is_judged_by_training_rows_and_the_report_says_so(tmp_path):
    frame = pd.DataFrame({"a": RNG.normal(size=120), "b": RNG.choice(["x", "y"], 120)})
    labels = np.where(frame["a"] > 0, "high", "low").astype(object)
    model = VAEClassifier(latent_dim=2, **SMALL).fit(frame, labels)
    write_report(model, frame[:20], tmp_path, X_train=frame, y_train=labels)
    text, metrics = read(tmp_path)
    assert not metrics["held_out"]
    assert metrics["rows"] == 120
    assert "Judged by training rows" in text
    assert (tmp_path / "columns_by_y.png").exists()
    write_report(model, frame[:20], tmp_path, y=labels[:20], X_train=frame, y_train=labels)  # rows that are known
    text, metrics = read(tmp_path)
    assert metrics["judged_by"] == "training"
    assert "Judged by training rows" in text
    write_report(model, frame[:20], tmp_path, y=labels[:20])
    text, metrics = read(tmp_path)
    assert (metrics["judged_by"], metrics["held_out"], metrics["rows"]) == ("given", False, 20)
    assert "Judged by the given rows" in text
    assert "20 given rows" in text
    assert "held-out rows" not in text.lower()
    assert "Only 20 rows have a label or target to judge by" in metrics["warnings"][0]


def test_a_share_of_few_rows_has_an_interval_that_contains_it():
    """Coverage of 95% intervals: the exact one of 17 trials, averaged over probabilities, is 0.95 within 0.01."""
    k, p = np.arange(18), np.linspace(0.005, 0.995, 199)
    ends = np.array([share_interval(count, 17) for count in k])
    coverage = (stats.binom.pmf(k, 17, p[:, None]) * ((ends[:, 0] <= p[:, None]) & (p[:, None] <= ends[:, 1]))).sum(1)
    assert coverage.mean() == pytest.approx(0.95, abs=0.01)
    assert 0 <= ends.min() < ends.max() <= 1


def test_a_label_without_training_rows_is_possible_in_the_baseline():
    shares = label_shares(np.array([0.0, 0.0, 1.0, np.nan]), 3)
    np.testing.assert_allclose(shares, np.array([2, 1, 0.5]) / 3.5)
    found = without_inputs_labels(np.array([0, 2]), shares)
    assert found == {"accuracy": 0.5, "log_loss": pytest.approx(-np.log(shares[[0, 2]]).mean())}


@pytest.mark.parametrize(("num", "is_said"), [(17, False), (400, True)])
def test_a_classifier_is_called_useless_by_enough_rows_only(monkeypatch, num, is_said):
    """It is right for 50% of the rows, of which 70% have one label, which 17 rows cannot tell."""
    places = np.where(np.arange(num) % 10 < 7, 0, 1)
    probabilities = np.where((np.arange(num) % 10 < 2)[:, None], [0.6, 0.4], [0.4, 0.6])
    monkeypatch.setattr("aevb.fitted.labels.label_probabilities", lambda model, X: probabilities)
    rows = Datapoint(np.zeros((num, 1)), given=places[:, None].astype(float))
    found = _classifier(None, rows, 0, rows)
    assert any("most frequent label would be right more often" in text for text in found["warnings"]) == is_said


def test_error_bars_stay_within_the_axes(monkeypatch, tmp_path):
    drawn = {}
    monkeypatch.setattr("aevb.report.calibration.save", lambda figure, path: drawn.setdefault("figure", figure))
    plot_reliability(tmp_path / "a.png", reliability(np.array([[0.97, 0.03]] * 5), np.zeros(5, int)), "5 rows")
    axes = drawn["figure"].axes[0]
    ends = np.concatenate([bars.get_segments()[0][:, 1] for bars in axes.collections if hasattr(bars, "get_segments")])
    assert 0 <= ends.min() < 0.9
    assert ends.max() <= 1


def test_columns_of_labels_are_drawn_as_shares(monkeypatch, tmp_path):
    drawn = {}
    monkeypatch.setattr("aevb.report.calibration.save", lambda figure, path: drawn.setdefault("figure", figure))
    panel = Panel([("cat", np.array([0.0, 0, 1, np.nan]), np.array([0.0, 1, 2, 2]))], ["red", "green", "blue"])
    plot_panels(tmp_path / "a.png", {"colour": panel}, "rows")
    axes = drawn["figure"].axes[0]
    widths = [round(bar.get_width(), 6) for bar in axes.patches]
    assert widths == [0.666667, 0.333333, 0, 0.25, 0.25, 0.5]
    assert {"red", "green", "blue"} <= {text.get_text() for text in axes.texts}


@pytest.mark.thorough
def test_dates_are_drawn_as_dates(monkeypatch, tmp_path):
    y = np.repeat(["old", "new"], 60)
    days = np.where(y == "old", 0, 1500) + RNG.integers(0, 300, 120)
    frame = pd.DataFrame(
        {"joined": pd.Timestamp("2015-03-01") + pd.to_timedelta(days, "D"), "age": RNG.normal(size=120)}
    )
    model = VAE(2, conditional=True, **SMALL).fit(frame, y)
    drawn = {}
    monkeypatch.setattr("aevb.report.calibration.save", lambda figure, path: drawn.setdefault("figure", figure))
    draw_columns(model.model_, LabelData("dates", "all", stored_rows(model, frame, y), None), tmp_path / "a.png", 0)
    dates, ages = drawn["figure"].axes
    medians = [line.get_xdata()[0] for line in dates.lines if line.get_marker() == "o"]
    since_1970 = (pd.Timestamp("2015-03-01") - pd.Timestamp(0)).days
    for label, found in zip(("new", "old"), medians[::2], strict=True):  # data, then samples, of each y
        assert found == since_1970 + np.median(days[y == label])
    drawn["figure"].canvas.draw()
    years = {text.get_text() for text in dates.get_xticklabels()}
    assert years
    assert years <= {str(year) for year in range(2014, 2022)}
    assert np.ptp(ages.get_xlim()) < 100


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:at .* k-hat")
def test_the_report_of_a_regressor_with_two_targets(tmp_path):
    rows = RNG.normal(size=(200, 3))
    targets = np.stack([rows[:, 0], np.exp(rows[:, 1])], axis=1) + 0.1 * RNG.normal(size=(200, 2))
    model = VAERegressor(num_samples=2, **SMALL).fit(rows[:150], targets[:150])
    write_report(model, rows[150:], tmp_path, y=targets[150:], X_train=rows[:150], y_train=targets[:150])
    text, metrics = read(tmp_path)
    assert len(metrics["targets"]) == 2
    expected = np.sqrt(np.mean((model.predict(rows[150:]) - targets[150:]) ** 2, axis=0))
    found = [target["root_mean_squared_error"] for target in metrics["targets"]]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    of_mean = np.sqrt(np.mean((targets[150:] - targets[:150].mean(axis=0)) ** 2, axis=0))
    np.testing.assert_allclose([target["error_of_the_mean"] for target in metrics["targets"]], of_mean, rtol=1e-5)
    assert f"predicting the mean of the training rows: {of_mean[0]:.4g}" in text
    assert metrics["log_prob"] == pytest.approx(model.log_prob(rows[150:], targets[150:]).mean, abs=0.05)
    assert '<a href="explorer.html">' in text
    assert (tmp_path / "quantiles.png").exists()
    assert (tmp_path / "predictions.png").exists()


@pytest.mark.thorough
def test_the_report_of_a_conditional_model(tmp_path):
    model = VAE(2, conditional=True, **SMALL).fit(X[:250], Y[:250])
    write_report(model, X[250:], tmp_path, y=Y[250:], X_train=X[:250], y_train=Y[:250], image_shape=(8, 8))
    text, metrics = read(tmp_path)
    assert metrics["lower_bound"] == pytest.approx(model.score(X[250:], Y[250:], num_samples=10), rel=1e-5)
    assert "log p(x|y)" in text
    for name in ("samples", "reconstructions", "counterfactuals"):
        assert (tmp_path / f"{name}.png").exists()
    write_report(VAE(2, conditional=True, **SMALL).fit(X, X[:, :2] + 1.0), X, tmp_path, y=X[:, :2] + 1.0)
    assert (tmp_path / "columns_by_y.png").exists()  # y is a table


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model, folder: write_report(model, X, folder), "Give y"),
        (lambda model, folder: write_report(model, X, folder, y=Y[:5]), "y has 5 rows"),
        (lambda model, folder: write_report(model, X, folder, y=Y, image_shape=(7, 7)), "64 pixels"),
    ],
)
def test_what_is_refused(tmp_path, call, message):
    model = VAE(2, conditional=True, **SMALL).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        call(model, tmp_path / "none")
    assert not (tmp_path / "none").exists()
