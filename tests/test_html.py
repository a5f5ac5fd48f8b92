"""Cards for notebooks: well-formed, escaped, and with the numbers of the fitted model."""

import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import numpyro.distributions as dist
import pandas
import pytest

from aevb import VAE, VAERegressor, fit_posterior
from aevb.html import card, curve
from aevb.inference.result import LogLikelihood
from aevb.training.notebook import NotebookBar, in_notebook
from aevb.training.progress import Progress, ShareDone

X = np.random.default_rng(0).normal(size=(60, 3))
SMALL = {"latent_dim": 1, "hidden": (4,), "max_epochs": 3, "optimizer": "sgd", "progress": False}
FRAME = pandas.DataFrame({"<age>": X[:, 0], "group": np.where(X[:, 1] > 0, "a", "b")})


def parsed(page):
    """Return the page as a tree; it is well-formed XML."""
    assert "<script" not in page
    return ET.fromstring(page)


def facts_of(page):
    return {row[0].text: row[1].text for row in parsed(page).iter("tr") if len(row) == 2}


def test_a_card_escapes_what_it_is_given():
    page = card("a < b", {"<name>": "x & y", "nothing": None}, warnings=["1 < 2"])
    assert facts_of(page) == {"<name>": "x & y"}
    assert [p.text for p in parsed(page).iter("p")] == ["1 < 2"]


def test_a_curve_is_drawn_from_left_to_right_and_upwards():
    rows = [{"epoch": e, "lower_bound": -10.0 / e, "validation_lower_bound": np.nan} for e in range(1, 6)]
    page = curve(rows, "epoch", {"lower_bound": "training", "validation_lower_bound": "held out"})
    (line,) = parsed(f"<div>{page}</div>").iter("polyline")
    points = np.array([point.split(",") for point in line.get("points").split()], float)
    assert (np.diff(points[:, 0]) > 0).all()
    assert (np.diff(points[:, 1]) < 0).all()
    assert "from -10 to -2" in page
    assert curve(rows[:1], "epoch", {"lower_bound": "training"}) == ""
    assert curve(rows * 1000, "epoch", {"lower_bound": "training"}).count(",") < 700


@pytest.mark.thorough
def test_a_fitted_model_shows_its_bound_and_an_unfitted_one_its_arguments():
    vae = VAE(**SMALL)
    assert "VAE" in vae._repr_html_()
    vae.fit(X)
    facts, last = facts_of(vae._repr_html_()), vae.history_[-1]
    assert facts["data"] == "rows, 3 columns"
    assert facts["lower bound"].startswith(f"{last['lower_bound']:.2f} nats per datapoint (training)")
    assert f"{last['validation_lower_bound']:.2f} (held out)" in facts["lower bound"]
    assert "hidden layers 4" in facts["p(x|z)"]
    # 3-4-1 with two heads, and back: (3 + 1) 4 + 2 (4 + 1), (1 + 1) 4 + 2 (4 + 1) 3.
    assert facts["parameters"] == f"{(3 + 1) * 4 + 2 * (4 + 1) + (1 + 1) * 4 + 2 * (4 + 1) * 3}"
    assert vae._repr_mimebundle_()["text/html"] == vae._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "data", "words"),
    [
        (VAE(**SMALL), (FRAME,), "a table, 2 columns"),
        (VAE(**SMALL, network="conv"), (np.random.default_rng(1).random((40, 8, 8)),), "images, 8 x 8"),
        (VAE(**SMALL, learner="mcem"), (X,), "rows, 3 columns"),
        (VAERegressor(**SMALL), (FRAME, X[:, 2]), "a table, 1 column"),
    ],
    ids=["table", "images", "mcem", "regressor"],
)
def test_every_model_has_a_card(estimator, data, words):
    facts = facts_of(estimator.fit(*data)._repr_html_())
    assert facts["data"] == words
    assert "3 epochs" in facts["training"]


def test_a_likelihood_shows_its_mean_and_its_warnings():
    found = LogLikelihood(
        np.array([-98.0, -99.0]), np.array([0.3, 0.4]), "importance", "1,000 samples", warnings=("w",)
    )
    page = found._repr_html_()
    assert facts_of(page)["mean"].startswith("-98.50 +- 0.25 nats")
    assert [p.text for p in parsed(page).iter("p")] == ["w"]


@pytest.mark.thorough
def test_a_posterior_shows_its_variables():
    fitted = fit_posterior(lambda v: dist.Normal(3.0, 0.5).log_prob(v["mean"]), variables={"mean": ()}, progress=False)
    tree = parsed(fitted._repr_html_())
    (row,) = [row for row in tree.iter("tr") if row[0].text == "mean" and len(row) > 2]
    assert float(row[1].text) == pytest.approx(float(fitted.mean["mean"]), abs=0.05)
    assert "limit 0.7" in facts_of(fitted._repr_html_())["k-hat"]


@pytest.fixture
def notebook(monkeypatch):
    """The parts of IPython that a kernel has; returns the HTML that is shown."""
    shown = []
    handle = SimpleNamespace(update=lambda page: shown.append(page.data))
    display = SimpleNamespace(
        HTML=lambda page: SimpleNamespace(data=page), display=lambda page, display_id: shown.append(page.data) or handle
    )
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr("aevb.training.notebook.SECONDS", 0.0)
    return shown


def test_progress_in_a_notebook_is_html_that_is_replaced(notebook, capsys):
    assert in_notebook()
    with Progress(True, total=200) as bar:
        bar.advance(50, "lower_bound", -3.0)
        bar.advance(50, "lower_bound", -2.0)
        bar.end()
    with ShareDone(True, "searching") as share:
        share.update(0.5)
    values = [float(parsed(f"<p>{page}</p>").find("progress").get("value")) for page in notebook]
    assert values == [0.25, 0.5, 1.0, 0.5]
    assert "training lower bound -2.00 nats" in notebook[1]
    assert capsys.readouterr() == ("", "")


def test_updates_that_follow_too_soon_are_left_out(notebook, monkeypatch):
    monkeypatch.setattr("aevb.training.notebook.SECONDS", 1e6)
    bar = NotebookBar()
    for share in (0.1, 0.2, None):
        bar.show(share, "learning")
    bar.show(1.0, "done", is_last=True)
    assert len(notebook) == 2


def test_no_progress_is_shown_in_a_notebook_unless_asked_for(notebook):
    with Progress(False, total=100) as bar:
        bar.advance(50, "lower_bound", -3.0)
        bar.end()
    assert notebook == []
