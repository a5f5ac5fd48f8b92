import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.image import imread

from aevb.fitted import FittedModel
from aevb.inference.diagnostics import ActiveUnits
from aevb.models import MatrixFormat
from aevb.report.columns import column_histograms, column_reconstructions
from aevb.report.nearest import nearest_rows
from aevb.report.pictures import _of_each_label
from aevb.report.references import independent_gaussians
from aevb.report.traversal import traversals
from aevb.report.units import active_units
from aevb.tasks import Traversal

X = np.random.default_rng(0).normal(size=(60, 23))


def test_nearest_rows_agree_with_a_search_of_all_pairs():
    train = np.random.default_rng(1).integers(0, 255, (4500, 7)).astype(np.uint8)  # more than two blocks
    rows = np.concatenate([train[[3, 4100]] / 255, np.random.default_rng(2).random((20, 7))])
    found = nearest_rows(rows, train, 1 / 255)
    distances = np.linalg.norm(rows[:, None] - train[None] / 255, axis=-1)
    np.testing.assert_array_equal(found.places, distances.argmin(axis=1))
    np.testing.assert_allclose(found.distances, distances.min(axis=1), atol=1e-12)
    np.testing.assert_allclose(found.distances[:2], 0, atol=1e-12)  # memorized rows are found


@pytest.mark.slow
def test_pictures_of_tables(tmp_path, monkeypatch):
    monkeypatch.setattr("aevb.fitted.coding.sample", lambda model, n, random_state: np.resize(X, (n, 23)))
    monkeypatch.setattr("aevb.fitted.coding.reconstruct", lambda model, rows: 0.5 * rows)
    vae = FittedModel(None, None, MatrixFormat(23))
    assert imread(column_histograms(vae, tmp_path / "a.png", X, seed=0)).std() > 0
    assert imread(column_reconstructions(vae, tmp_path / "b.png", X, [f"name {n}" for n in range(23)])).std() > 0
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("variances", [[1.0, 0.5, 1e-9], np.zeros(30), [0.3]])
def test_active_units_of_any_model(tmp_path, variances):
    variances = np.asarray(variances)
    units = ActiveUnits(variances, variances > 0.01)
    assert imread(active_units(units, tmp_path / "units.png")).std() > 0


def test_rows_to_show_run_twice_through_the_labels():
    labels = np.array([2, 0, 1, 1, 0, 2, 1])
    assert list(labels[_of_each_label(labels, 7, most=6)]) == [0, 1, 2, 0, 1, 2]
    assert list(_of_each_label(None, 101, most=3)) == [0, 50, 100]


def test_independent_gaussians_agree_with_scipy():
    from scipy.stats import norm

    expected = norm(X[:40].mean(0), X[:40].std(0)).logpdf(X[40:]).sum(axis=1).mean()
    assert independent_gaussians(X[:40], X[40:]) == pytest.approx(expected)


@pytest.mark.parametrize(("divergences", "unit"), [(None, "variance"), (np.ones(2), "nats")])
def test_traversals_say_what_they_are_ranked_by(tmp_path, monkeypatch, divergences, unit):
    said, text = [], Axes.text
    monkeypatch.setattr(Axes, "text", lambda self, x, y, s, **style: said.append(s) or text(self, x, y, s, **style))
    found = Traversal(np.array([1, 0]), np.array([0.9, 0.1]), np.linspace(-2.5, 2.5, 11), np.zeros((2, 11, 4)))
    monkeypatch.setattr("aevb.fitted.latent_space.traverse", lambda model, rows, size: found)
    monkeypatch.setattr("aevb.fitted.latent_space.divergences", lambda model, rows: divergences)
    vae = FittedModel(None, None, MatrixFormat(4), likelihood="bernoulli")
    traversals(vae, tmp_path / "traversals.png", X[:3, :4], (2, 2))
    assert f"0.90 {unit}" in said
