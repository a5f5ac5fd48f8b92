import csv
import json
import sys
import tomllib

import numpy as np
import pytest

from aevb import VAE, load
from aevb.cli.demo import demo
from aevb.data import load_dataset

demo_module = sys.modules["aevb.cli.demo"]  # `aevb.cli.demo` itself is the function
FILES = {"config.toml", "model", "history.csv", "metrics.json", "manifold.png", "reconstructions.png", "samples.png"}
FILES |= {"latent.png", "learning_curve.png"}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    def model(epochs, seed):
        return VAE(latent_dim=2, hidden=(10,), max_epochs=epochs, random_state=seed, progress=False)

    monkeypatch.setattr(demo_module, "_model", model)


def test_a_run_is_complete_and_says_how_its_numbers_came_about(tmp_path, capsys):
    folder = tmp_path / "demo"
    demo(output=folder, epochs=2, data="digits", seed=3)
    assert {path.name for path in folder.iterdir()} == FILES

    metrics = json.loads((folder / "metrics.json").read_text())
    bound = metrics["held_out_lower_bound"]
    digits = load_dataset("digits")
    _, test = digits.split(179, seed=3)
    expected = load(folder / "model").score_samples(digits.rows[test], num_samples=bound["num_samples"])
    assert bound["value"] == pytest.approx(expected.mean(), rel=1e-5)
    assert bound["std_error"] == pytest.approx(expected.std(ddof=1) / np.sqrt(179), rel=1e-5)
    assert (bound["estimator"], bound["num_samples"], bound["seed"]) == ("sgvb-b", 10, 3)
    assert bound["binarization"] == "grey"
    assert bound["split"].startswith("test: 179 of 1797 rows")
    assert bound["value"] < metrics["comparison"]["grey_level_ceiling"] < 0
    assert tomllib.loads((folder / "config.toml").read_text())["model"]["random_state"] == 3
    with open(folder / "history.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 2

    out = capsys.readouterr().out
    assert f"{bound['value']:.1f}" in out
    assert f"The results are in {folder}:" in out
    assert "binarized" in out


def test_ctrl_c_while_learning_still_draws(tmp_path, monkeypatch, capsys):
    from aevb.training.progress import Progress

    def advance(self, samples, name, value):
        self.calls = getattr(self, "calls", 0) + 1
        if self.calls == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "advance", advance)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "mine").write_text("kept")
    demo(output=tmp_path / "demo", epochs=50, data="digits")
    assert {path.name for path in (tmp_path / "demo-2").iterdir()} == FILES
    assert [path.name for path in (tmp_path / "demo").iterdir()] == ["mine"]
    out = capsys.readouterr().out
    assert "interrupted" in out
    assert "demo holds an earlier run" in out


def test_ctrl_c_before_learning_leaves_nothing(tmp_path, monkeypatch):
    def load_nothing(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_module, "_load", load_nothing)
    with pytest.raises(SystemExit) as stop:
        demo(output=tmp_path / "demo", data="digits")
    assert stop.value.code == 130
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_module, "_load", lambda name: pytest.fail("work was done before the check"))
    file = tmp_path / "file"
    file.write_text("kept")
    with pytest.raises(SystemExit, match=r"--output .*cannot write there"):
        demo(output=file)
    assert file.read_text() == "kept"


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_module, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"aevb\[demo\]"):
        demo(output=tmp_path / "demo")
    assert not list(tmp_path.iterdir())
