"""The picture of the families is there, complete, and replaces an old one only as a whole."""

import matplotlib.image
import numpy as np
import pytest

from aevb.report import families
from aevb.report.families import draw_families


@pytest.fixture
def one_panel_per_route(monkeypatch):
    """All families take half a minute to compile; the first of each route has every kind of panel."""
    routes = {name: (color, panels[:1]) for name, (color, panels) in families._ROUTES.items()}
    monkeypatch.setattr(families, "_ROUTES", routes)


@pytest.mark.slow
@pytest.mark.usefixtures("one_panel_per_route")
def test_picture(tmp_path):
    path = draw_families(tmp_path / "new" / "families.png")
    assert path == tmp_path / "new" / "families.png"
    assert sorted(path.parent.iterdir()) == [path, path.with_suffix(".svg")]
    pixels = matplotlib.image.imread(path)[..., :3]
    height, width, _ = pixels.shape
    assert min(height, width) > 500
    assert (pixels < 0.9).any(axis=-1).mean() > 0.01  # not blank


def test_an_old_picture_survives_a_failure(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no draws today")

    monkeypatch.setattr(families, "_draws_and_gradients", fail)
    path = tmp_path / "families.png"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="no draws today"):
        draw_families(path)
    assert path.read_text() == "old"


def test_every_family_of_the_paper_is_drawn():
    drawn = " ".join(panel.title for _, panels in families._ROUTES.values() for panel in panels)
    paper = (
        "Exponential Cauchy Logistic Rayleigh Pareto Weibull Reciprocal Gompertz Gumbel Erlang Laplace Multivariate"
        " Student's Uniform Triangular Normal Log-normal Gamma Dirichlet Beta Chi-squared F"
    )
    assert set(paper.split()) <= set(drawn.replace(",", "").split())


def test_the_plotted_range_contains_the_draws_but_not_heavy_tails():
    z = np.random.default_rng(0).normal(size=1000)
    low, high = families._shown_range(z)
    assert np.mean((low < z) & (z < high)) > 0.97
    assert families._shown_range(np.append(z, [1e9] * 50))[1] < 10
