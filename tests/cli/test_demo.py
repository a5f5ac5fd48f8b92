import csv
import json
import sys
import tomllib

import numpy as np
import pytest

import aevb.cli.demo  # noqa: F401
from aevb import load
from aevb.cli import run
from aevb.data import load_dataset

demo_module = sys.modules["aevb.cli.demo"]
PICTURES = {"manifold", "latent", "reconstructions", "samples", "nearest", "learning_curve"}
FILES = {"config.toml", "model", "history.csv", "metrics.json", "report.html", "explorer.html"}
FILES |= {f"{name}.{ending}" for name in PICTURES for ending in ("png", "svg")}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(demo_module, "SETTING", {"latent_dim": 2, "hidden": (10,)})


@pytest.mark.thorough
def test_a_run_is_complete_and_records_how_its_numbers_were_computed(tmp_path, capsys):
    folder = tmp_path / "demo"
    assert run(["demo", "--output", str(folder), "--epochs", "2", "--data", "digits", "--seed", "3"]) == 0
    assert {path.name for path in folder.iterdir()} == FILES

    metrics = json.loads((folder / "metrics.json").read_text())
    bound = metrics["held_out_lower_bound"]
    digits = load_dataset("digits")
    _, test = digits.split(179, seed=3)
    expected = load(folder / "model").score_samples(digits.rows[test], num_samples=bound["num_samples"])
    assert bound["value"] == pytest.approx(expected.mean(), rel=1e-5)
    assert bound["std_error"] == pytest.approx(expected.std(ddof=1) / np.sqrt(179), rel=1e-5)
    assert bound["value"] == pytest.approx(bound["reconstruction"] - bound["kl_divergence"], rel=1e-5)
    assert (bound["estimator"], bound["num_samples"], bound["seed"]) == ("sgvb-b", 10, 3)
    assert bound["split"].startswith("test: 179 of 1797 rows")
    assert bound["value"] < metrics["comparison"]["grey_level_ceiling"] < 0
    for name in ("held_out_lower_bound", "training_lower_bound", "held_out_log_likelihood", "nearest_training_row"):
        assert metrics[name]["binarization"] == "grey"
    assert tomllib.loads((folder / "config.toml").read_text())["model"]["random_state"] == 3
    with open(folder / "history.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 2

    out = capsys.readouterr().out
    assert "1,618 for training, 179 held out" in out
    assert "Likelihood: bernoulli, because the values in [0, 1] are mostly near 0 and 1, like ink on paper" in out
    assert any(f"{bound['value']:.{places}f}" in out for places in (1, 2))  # two, if they are close to each other
    assert out.splitlines()[-1] == f"Results are in {folder}. Open {folder / 'report.html'}"
    assert "binarized" in out
    assert '<a href="explorer.html">' in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.thorough
def test_ctrl_c_during_training_still_writes_the_report(tmp_path, monkeypatch, capsys):
    from aevb.training.progress import Progress

    def advance(self, samples, name, value):
        self.calls = getattr(self, "calls", 0) + 1
        if self.calls == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "advance", advance)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "mine").write_text("kept")
    assert run(["demo", "--output", str(tmp_path / "demo"), "--epochs", "50", "--data", "digits"]) == 130
    assert {path.name for path in (tmp_path / "demo-2").iterdir()} == FILES
    assert [path.name for path in (tmp_path / "demo").iterdir()] == ["mine"]
    assert load(tmp_path / "demo-2" / "model").stopped_because_ == "interrupted"
    out = capsys.readouterr().out
    assert "interrupted" in out
    assert "demo already contains a run" in out


def test_ctrl_c_before_training_leaves_nothing(tmp_path, monkeypatch):
    def fit(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("aevb.vae.VAE.fit", fit)
    assert run(["demo", "--output", str(tmp_path / "demo"), "--data", "digits"]) == 130
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_created_is_refused_before_any_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("aevb.vae.VAE.fit", lambda *arguments, **options: pytest.fail("work was done before the check"))
    file = tmp_path / "file"
    file.write_text("kept")
    assert run(["demo", "--output", str(file), "--data", "digits"]) == 2
    assert "cannot write there" in capsys.readouterr().err
    assert file.read_text() == "kept"
