import json

import numpy as np
import pytest

from aevb.experiments import convolutions
from aevb.experiments.convolutions import NETWORKS, reproduce_convolutions


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:at .* k-hat")
def test_both_networks_are_measured_written_and_not_repeated(tmp_path, monkeypatch):
    files = reproduce_convolutions("tiny", tmp_path)
    results = json.loads((tmp_path / "convolutions.json").read_text(encoding="utf-8"))["results"]["digits"]
    monkeypatch.setattr(convolutions, "measured", None)  # calling it would fail
    monkeypatch.setattr(convolutions, "timed", None)
    assert reproduce_convolutions("tiny", tmp_path) == files
    for network in NETWORKS:
        found, speed = results[network], results[f"{network}, speed"]
        assert -64 * np.log(2) - 5 < found["log_likelihood"] < 0
        assert found["epochs"] <= found["max_epochs"] == max(int(0.5 / speed["seconds_per_epoch"]), 1)
        assert f"{found['log_likelihood']:.2f}" in files[0].read_text(encoding="utf-8")
    assert results["conv"]["num_parameters"] < 2_000_000
