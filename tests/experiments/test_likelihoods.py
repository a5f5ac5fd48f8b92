import json

import numpy as np
import pytest

from aevb.experiments import likelihoods
from aevb.experiments.likelihoods import published_rate, reproduce_likelihoods


@pytest.mark.thorough
def test_the_published_schedule():
    rate = published_rate(10)
    steps = np.array([0, 9, 10, 39, 40, 32_799])  # 1, 3, 9, ... epochs of ten steps
    np.testing.assert_allclose([rate(step) for step in steps], [1e-3, 1e-3, 7.2e-4, 7.2e-4, 5.2e-4, 1e-4], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:at .* k-hat")
def test_likelihoods_are_measured_written_and_not_repeated(tmp_path, monkeypatch):
    files = reproduce_likelihoods("tiny", tmp_path)
    results = json.loads((tmp_path / "likelihoods.json").read_text(encoding="utf-8"))["results"]
    monkeypatch.setattr(likelihoods, "measured", pytest.fail)
    assert reproduce_likelihoods("tiny", tmp_path) == files
    assert {layers: set(rows) for layers, rows in results.items()} == {
        "one layer": {"k = 1", "k = 5"},
        "two layers": {"k = 1", "k = 5"},
    }
    for rows in results.values():
        for found in rows.values():
            assert 20 < found["negative_log_likelihood"] < 64 * np.log(2) + 5
            assert f"{found['negative_log_likelihood']:.2f}" in files[0].read_text(encoding="utf-8")
