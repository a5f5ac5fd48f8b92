import csv
import json
import tomllib

import pytest

from aevb import runs
from aevb.files import written_whole


def test_an_earlier_run_is_never_touched(tmp_path):
    first = runs.new_run_folder(tmp_path / "demo")
    (first / "metrics.json").write_text("kept")
    second = runs.new_run_folder(tmp_path / "demo")
    (second / "metrics.json").write_text("kept too")
    assert runs.new_run_folder(tmp_path / "demo").name == "demo-3"
    assert (first / "metrics.json").read_text() == "kept"


def test_an_empty_folder_is_used(tmp_path):
    assert runs.new_run_folder(tmp_path) == tmp_path


def test_config_is_toml_without_none_values(tmp_path):
    model = {"hidden": (500, 200), "init": 'a "quoted" ü', "learning_rate": None, "progress": True, "fraction": 0.1}
    runs.write_config(tmp_path, {"data": {"name": "digits"}, "model": model})
    config = tomllib.loads((tmp_path / "config.toml").read_text(encoding="utf-8"))
    assert config["data"] == {"name": "digits"}
    assert config["model"] == {"hidden": [500, 200], "init": 'a "quoted" ü', "progress": True, "fraction": 0.1}


def test_history_has_one_row_per_epoch(tmp_path):
    history = [{"epoch": 1, "lower_bound": -3.5}, {"epoch": 2, "lower_bound": -3.0, "kl_divergence": 1.0}]
    runs.write_history(tmp_path, history)
    with open(tmp_path / "history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {"epoch": "1", "lower_bound": "-3.5", "kl_divergence": ""}
    assert rows[1] == {"epoch": "2", "lower_bound": "-3.0", "kl_divergence": "1.0"}


def test_metrics_include_versions_and_machine(tmp_path):
    runs.write_metrics(tmp_path, {"answer": 42})
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["answer"] == 42
    assert metrics["versions"]["jax"].count(".") == 2
    assert {"commit", "machine"} < set(metrics)


def test_a_failed_write_leaves_the_old_file_unchanged(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail():
        with written_whole(path) as scratch:
            scratch.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
