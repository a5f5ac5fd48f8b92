from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.image import imread

from aevb.fitted import FittedModel, TrainingRecord
from aevb.models import MatrixFormat
from aevb.report import latent_scatter, learning_curve
from aevb.report.learning import curve_words, limits
from aevb.report.plots import _own_place

HISTORY = [
    {"epoch": 1, "samples": 100, "lower_bound": -50.0, "validation_lower_bound": -30.0, "seconds": 1.0},
    {"epoch": 2, "samples": 200, "lower_bound": -25.0, "validation_lower_bound": -24.0, "seconds": 2.0},
]


def model_of(history):
    return FittedModel(None, None, MatrixFormat(1), record=TrainingRecord(history))


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("held_out", [True, False])
def test_learning_curve_of_any_history(tmp_path, epochs, held_out):
    columns = ["epoch", "samples", "lower_bound", "seconds"] + ["validation_lower_bound"] * held_out
    history = [{name: row[name] for name in columns} for row in HISTORY[:epochs]]
    path = learning_curve(model_of(history), tmp_path / "curve.png")
    assert imread(path).std() > 0


def test_limits_of_axes_ignore_what_cannot_be_drawn_and_show_what_is_marked():
    flat, spike = [-9.0] * 20, [-9.0] * 10 + [100.0] + [-9.0] * 9
    assert limits([[-np.inf, *flat], [np.nan, *flat]]) == limits([flat, flat])
    assert limits([[np.nan] * 3]) == limits([[0.0] * 3])
    assert limits([flat, spike])[1] < 100 < limits([flat, spike], marks_best=True)[1]


def test_learning_curves_have_a_panel_for_each_term(tmp_path, monkeypatch):
    """The bound above, its two terms below, training and held out in each."""
    drawn = []
    monkeypatch.setattr("aevb.report.learning.save", lambda figure, path: drawn.append(figure) or path)
    terms = {"reconstruction": -20.0, "kl_divergence": 4.0}
    terms |= {f"validation_{name}": value - 1 for name, value in terms.items()}
    learning_curve(model_of([row | terms for row in HISTORY]), tmp_path / "curve.png")
    above, reconstruction, divergence = drawn[0].axes
    assert [list(line.get_ydata()) for line in above.lines[:2]] == [[-50.0, -25.0], [-30.0, -24.0]]
    assert [list(line.get_ydata()) for line in reconstruction.lines] == [[-20.0, -20.0], [-21.0, -21.0]]
    assert [list(line.get_ydata()) for line in divergence.lines] == [[4.0, 4.0], [3.0, 3.0]]


@pytest.mark.parametrize("num_later", [1, 8])
def test_later_rows_may_lack_what_the_first_ones_have(tmp_path, monkeypatch, num_later):
    """Those of `partial_fit` hold out nothing."""
    drawn = []
    monkeypatch.setattr("aevb.report.learning.save", lambda figure, path: drawn.append(figure) or path)
    later = [{"epoch": k, "samples": 100 * k, "lower_bound": -20.0} for k in range(3, 3 + num_later)]
    learning_curve(model_of([*HISTORY, *later]), tmp_path / "curve.png")
    training, held_out = drawn[0].axes[0].lines[:2]
    np.testing.assert_array_equal(training.get_ydata(), [-50, -25, *[-20] * num_later])
    np.testing.assert_array_equal(held_out.get_ydata(), [-30, -24, *[np.nan] * num_later])
    names = {text.get_text(): text.xy for text in drawn[0].axes[0].texts if hasattr(text, "xy")}
    assert names["held out"] == (200, -24.0)
    assert names["training"] == (100 * (2 + num_later), -20.0)
    said = "1 of 5 points" if num_later == 1 else "The parameters of the best held-out epoch are kept."
    assert said in curve_words(model_of([*HISTORY, *later]))


@pytest.mark.parametrize("held_out", [True, False])
@pytest.mark.parametrize("spike", [0, 7])
def test_a_spike_does_not_flatten_learning_curves(tmp_path, monkeypatch, held_out, spike):
    drawn = []
    monkeypatch.setattr("aevb.report.learning.save", lambda figure, path: drawn.append(figure) or path)
    bounds = -20 + 5 * np.log(1 + np.arange(30.0))
    history = [{"samples": 100 * k + 100, "lower_bound": bound} for k, bound in enumerate(bounds)]
    for row in history if held_out else ():
        row["validation_lower_bound"] = row["lower_bound"] - 1
    assert "outside" not in curve_words(model_of(history))
    for name in ("lower_bound", "validation_lower_bound")[: 1 + held_out]:
        history[spike][name] = -1e6
    learning_curve(model_of(history), tmp_path / "curve.png")
    low, high = drawn[0].axes[0].get_ylim()
    assert -60 < low < -20  # all others are seen
    assert bounds[-1] < high < 10
    said = f"{1 + held_out} of {30 * (1 + held_out)} points"
    assert said in curve_words(model_of(history))


@pytest.mark.thorough
@pytest.mark.parametrize("epochs", [1, 3, 9, 40])
def test_labels_of_small_panels_do_not_overlap(tmp_path, monkeypatch, epochs):
    drawn = []
    monkeypatch.setattr("aevb.report.learning.save", lambda figure, path: drawn.append(figure) or path)
    terms = {"reconstruction": -20.0, "kl_divergence": 4.0}
    history = [HISTORY[0] | terms | {"epoch": k, "samples": 1375 * k} for k in range(1, epochs + 1)]
    learning_curve(model_of(history), tmp_path / "curve.png")
    drawn[0].draw_without_rendering()
    for axes in drawn[0].axes[1:]:
        low, high = axes.get_xlim()
        shown = [tick.label1 for tick in axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
        boxes = [label.get_window_extent() for label in shown]
        assert boxes
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.parametrize("labels", [None, np.arange(60) % 3, np.linspace(0, 1, 60)])
def test_latent_scatter_with_classes_quantities_or_nothing(tmp_path, monkeypatch, labels):
    codes = np.random.default_rng(0).normal(size=(60, 2))
    monkeypatch.setattr("aevb.fitted.coding.posterior_means", lambda model, rows: rows)
    assert imread(latent_scatter(SimpleNamespace(latent_dim=2), tmp_path / "latent.png", codes, labels)).std() > 0


def test_a_class_name_is_placed_where_the_class_dominates():
    """Half of the class lies among others, half alone at (5, 5); its median would be in between."""
    generator = np.random.default_rng(0)
    crowd, alone = generator.normal(0, 0.1, (50, 2)), generator.normal(5, 0.1, (50, 2))
    codes = np.concatenate([crowd, alone, generator.normal(0, 0.1, (100, 2))])
    place = _own_place(codes, np.arange(200) < 100)
    assert np.linalg.norm(place - 5) < 0.5
