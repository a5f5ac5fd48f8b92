"""Conditional MNIST as an experiment, on scikit-learn's digits."""

import json

import pytest

from aevb.experiments.conditional import conditional_core_seconds, reproduce_conditional, summary


@pytest.mark.thorough
def test_the_tiny_profile_compares_both_models_and_reads_generated_digits(tmp_path):
    assert conditional_core_seconds("tiny", tmp_path) > 0
    paths = reproduce_conditional("tiny", tmp_path)
    assert [path.name for path in paths] == ["conditional.md", "conditional.json"]
    found = json.loads((tmp_path / "conditional.json").read_text(encoding="utf-8"))["results"]
    assert 0 <= found["given y"]["0"]["read_means"] <= 1
    assert "read_means" not in found["without y"]["0"]
    assert conditional_core_seconds("tiny", tmp_path) == 0


def test_the_margin_is_that_of_equal_seeds():
    given = {
        "lower_bound": -90.0,
        "read_means": 0.99,
        "read_draws": 0.97,
        "reader_of_means": 0.98,
        "reader_of_draws": 0.97,
    }
    results = {
        "given y": {"0": given, "1": given | {"lower_bound": -91.0}},
        "without y": {"0": {"lower_bound": -94.0}, "1": {"lower_bound": -96.0}},
    }
    text = summary(results)
    assert "| 0 | -90.00 | -94.00 | 4.00 | 99.00% | 97.00% |" in text
    assert "4.50 ± 0.71" in text
