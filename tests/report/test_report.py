"""The report of a fitted model by one Python call."""

import copy
import json
from types import SimpleNamespace

import equinox as eqx
import jax
import numpy as np
import numpyro.distributions as dist
import pytest
import sklearn
from sklearn.datasets import load_iris

from aevb import VAE
from aevb.fitted import FittedModel, TrainingRecord
from aevb.models import MatrixFormat
from aevb.report import latent_scatter, pictures, write_report
from aevb.report.measures import NUM_SAMPLES, likelihood_rows, measure
from aevb.report.page import ranking
from aevb.settings import Arguments

IRIS = load_iris(as_frame=True)
X, Y = IRIS.data, IRIS.target_names[IRIS.target]
TRAIN, TEST = X[::2], X[1::2]


class LaplaceDecoder(eqx.Module):
    network: eqx.nn.MLP

    def __call__(self, z):
        return dist.Laplace(self.network(z), 1.0).to_event(1)


@pytest.fixture(scope="module")
def vae():
    return VAE(2, hidden=(4,), max_epochs=2, optimizer="sgd", progress=False).fit(TRAIN)


@pytest.fixture(scope="module", autouse=True)
def _small():
    """One picture, and few candidates for the simple models."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "PICTURES", {"latent": pictures.PICTURES["latent"]})
        patch.setattr("aevb.inference.baselines.COMPONENTS", (1,))
        patch.setattr("aevb.inference.baselines.MIXTURE_SIZES", (2,))
        patch.setattr("aevb.inference.baselines.NUM_FOLDS", 2)
        yield


@pytest.fixture(scope="module")
def written(vae, _small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "iris"
    path = write_report(vae, TEST, folder, X_train=TRAIN, y=Y[1::2], y_train=Y[::2], title="Iris <flowers>")
    assert path == folder / "report.html"
    return folder


def test_one_call_writes_report_page_and_numbers(written):
    names = {path.name for path in written.iterdir()}
    assert names == {"report.html", "explorer.html", "metrics.json", "history.csv", "latent.png", "latent.svg"}
    page = (written / "report.html").read_text(encoding="utf-8")
    for said in ("Iris &lt;flowers&gt;", "Gaussian mixture", "factor analysis, 2 factors", 'href="explorer.html"'):
        assert said in page
    assert "config.toml" not in page
    assert "Data and model card" in page
    assert "batches of 32 rows" in page  # "auto"
    assert "petal length (cm)" in (written / "explorer.html").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore:at 1 of 75 datapoints k-hat")  # the model is hardly trained
def test_the_gap_is_that_of_the_same_rows(vae, written):
    metrics = json.loads((written / "metrics.json").read_text())["held_out_log_likelihood"]
    values = vae.log_likelihood(TEST, method="laplace", num_samples=500).values
    bounds = vae.score_samples(TEST, num_samples=NUM_SAMPLES)
    assert metrics["gap"] == pytest.approx(np.mean(values - bounds), abs=1e-4)
    assert metrics["gap_std_error"] == pytest.approx(np.std(values - bounds, ddof=1) / np.sqrt(75), abs=1e-4)
    assert metrics["lower_bound"] == pytest.approx(bounds.mean(), abs=1e-4)
    page = (written / "report.html").read_text(encoding="utf-8")
    assert metrics["gap_is_within_error"] == (abs(metrics["gap"]) <= 2 * metrics["gap_std_error"])
    assert metrics["gap_is_within_error"] == ("zero within its error" in page)


@pytest.mark.thorough
def test_the_gap_of_some_rows_does_not_mix_in_others(vae, monkeypatch):
    """Two thirds of the rows are outliers: the bound of all rows would be far from log p(x) of the others."""
    monkeypatch.setattr("aevb.report.measures.likelihood_rows", lambda rows: rows[::3])
    rows = np.repeat(TEST.to_numpy()[:10], 3, axis=0) + 30 * (np.arange(30) % 3 > 0)[:, None]
    dataset = SimpleNamespace(image_shape=None, name="iris")
    given = {"test_given": None, "train_given": None}
    options = {"num_train": 0, "split": "", "binarization": "none", "dataset": dataset} | given
    run_data = SimpleNamespace(test=rows, train=rows[:0], **options)
    metrics = measure(vae.model_, run_data, 0)
    likelihood = metrics["held_out_log_likelihood"]
    assert likelihood["value"] - metrics["held_out_lower_bound"]["value"] > 100
    assert 0 <= likelihood["gap"] < 10


@pytest.mark.parametrize("scope", ["model", "global"])
def test_models_that_return_frames_are_reported(vae, tmp_path, scope):
    own = copy.copy(vae)
    if scope == "model":
        own.set_output(transform="pandas")
    with sklearn.config_context(transform_output="pandas" if scope == "global" else "default"):
        assert write_report(own, TEST, tmp_path).exists()
        assert latent_scatter(own, tmp_path / "scatter.png", TEST).exists()


def test_the_models_are_ranked_on_the_same_rows(written):
    title, entries = ranking(json.loads((written / "metrics.json").read_text()))
    assert title == "log p(x) of 75 held-out rows, nats per row, density of x in the units of the data"
    values = [entry["value"] for entry in entries]
    assert values == sorted(values)
    assert [entry["words"] for entry in entries if entry["is_own"]] == ["this model, 2 latent variables"]
    assert len(entries) == 6


@pytest.mark.thorough
def test_own_networks_are_reported_and_the_missing_page_is_explained(tmp_path):
    decoder = LaplaceDecoder(eqx.nn.MLP(2, 4, 3, 1, key=jax.random.key(0)))
    prior = dist.Logistic(np.zeros(2), 1.0).to_event(1)
    own = VAE(2, hidden=(4,), decoder=decoder, prior=prior, max_epochs=2, optimizer="sgd", progress=False).fit(TRAIN)
    (tmp_path / "explorer.html").write_text("of another model")
    page = write_report(own, TEST, tmp_path).read_text(encoding="utf-8")
    assert "your own decoder: LaplaceDecoder" in page
    assert "your own: Independent" in page or "your own: Logistic" in page
    assert "There is no interactive page: this model has its own prior and decoder" in page
    assert not (tmp_path / "explorer.html").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"y": Y[:3]}, r"y has shape \(3,\); expected \(75,\)"),
        ({"y": Y[1::2], "X_train": TRAIN}, "labels of both X and X_train"),
        ({"image_shape": (3, 3)}, r"image_shape=\(3, 3\): expected \(height, width\) with 4 pixels"),
    ],
)
def test_mismatched_arguments_are_refused_before_anything_is_written(vae, tmp_path, options, said):
    with pytest.raises(ValueError, match=said):
        write_report(vae, TEST, tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


def test_log_p_uses_all_rows_of_a_table_but_only_a_hundred_large_images():
    assert [len(likelihood_rows(np.zeros((2000, width)))) for width in (4, 500, 784, 5000)] == [1000, 156, 100, 100]


def caption(name, labels=None, *, estimator="sgvb-b", learner="aevb", history=None, refit_epochs=None):
    run_data = SimpleNamespace(train_labels=labels, test_labels=labels)
    record = TrainingRecord(history or [{"reconstruction": 0.0}], refit_epochs=refit_epochs)
    arguments = Arguments(num_samples=5, learner=learner)
    model = FittedModel(None, None, MatrixFormat(1), arguments=arguments, estimator=estimator, record=record)
    return CAPTIONS[name](model, run_data)


CAPTIONS = {name: picture.caption for name, picture in pictures.PICTURES.items()}


def test_captions_explain_the_colours():
    assert "colour" not in caption("latent")
    assert "Its colour is its label" in caption("latent", np.arange(10))
    assert "the value of its label" in caption("latent", np.arange(40))
    said = caption("latent", np.array([f"person {number}" for number in range(40)]))
    assert "40 different labels, too many to tell apart by colour" in said


def test_captions_name_the_bound_of_the_curve():
    assert "its two terms" in caption("learning_curve")
    said = caption("learning_curve", estimator="importance", history=[{"lower_bound": 0.0}])
    assert "importance-weighted bound with 5 samples" in said
    assert "two terms" not in said
    assert "Monte Carlo EM" in caption("learning_curve", learner="mcem")
    assert "two terms" not in caption("learning_curve", estimator="sgvb-a", history=[{}])


def test_captions_say_that_the_model_was_refit_on_all_rows():
    assert "Nothing was held out" in caption("learning_curve")
    assert "refit on all training rows, including these" in caption("learning_curve", refit_epochs=3)
