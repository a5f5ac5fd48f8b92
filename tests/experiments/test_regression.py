import json

import numpy as np
import pytest

from aevb.experiments import regression
from aevb.experiments.regression import (
    CASES,
    Case,
    Split,
    by_gaussian_network,
    read_split,
    reproduce_regression,
    summary,
)

RNG = np.random.default_rng(0)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A set with a published split, in the folder of AEVB_DATA."""
    (tmp_path / "uci_regression").mkdir()
    x = RNG.normal(size=(200, 2))
    table = np.c_[x, np.round(x[:, 0])]
    arrays = {"data": table, "features": np.array([0, 1]), "target": np.array(2), "test_0": np.arange(150, 200)}
    np.savez(tmp_path / "uci_regression" / "some.npz", **arrays)
    monkeypatch.setenv("AEVB_DATA", str(tmp_path))
    monkeypatch.setattr(regression, "CASES", {"some": Case("some", -1.0, 0.1)})
    return tmp_path


def test_test_rows_are_the_published_ones_and_few_values_are_dequantized(data):
    plain, spread = (read_split(Case("some", 0.0, 0.0, step), 0) for step in (0.0, 1.0))
    assert plain.x.shape == (150, 2)
    assert plain.test_y.shape == (50,)
    assert len(np.unique(plain.y)) < 10 < len(np.unique(spread.y))
    np.testing.assert_array_equal(np.round(spread.y), plain.y)


def test_published_figures_are_shown_beside_those_found():
    fit = {"log_likelihood": -2.5, "num_train": 455, "num_test": 51}
    text = summary({"Boston": {"VAERegressor": {"0": fit, "1": {**fit, "log_likelihood": -2.7}}}})
    assert "| Boston | 455 + 51 | 2 | -2.60 ± 0.10 |  | -2.40 ± 0.04 |" in text
    assert set(CASES) == {"Boston", "energy", "power", "protein", "wine", "wine, dequantized"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No latent variable is active")  # it has none
def test_the_gaussian_network_reaches_the_density_of_gaussian_noise():
    """y = x + (0.2 + 0.2 [x > 0]) noise; what is learned from 4,000 rows is 0.02 nats short of the exact density."""
    x = RNG.uniform(-1, 1, (5000, 1))
    std = np.where(x[:, 0] > 0, 0.4, 0.2)
    y = x[:, 0] + std * RNG.normal(size=5000)
    found = by_gaussian_network(Split(x[:4000], y[:4000], x[4000:], y[4000:]), 0)
    exact = -np.log(2 * np.pi * std**2) / 2 - (y - x[:, 0]) ** 2 / (2 * std**2)
    assert np.mean(found - exact[4000:]) == pytest.approx(0, abs=0.05)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
def test_fits_are_written_and_not_repeated(data, tmp_path, monkeypatch):
    reproduce_regression("tiny", tmp_path / "out", cases=("some",))
    monkeypatch.setattr(regression, "METHODS", dict.fromkeys(regression.METHODS))  # calling one would fail
    reproduce_regression("tiny", tmp_path / "out", cases=("some",))
    found = json.loads((tmp_path / "out" / "regression.json").read_text(encoding="utf-8"))["results"]
    assert {method: list(splits) for method, splits in found["some"].items()} == {
        "VAERegressor": ["0"],
        "Gaussian network": ["0"],
    }
