import json

import numpy as np
import pytest

from aevb.experiments import semi_supervised
from aevb.experiments.semi_supervised import NUM_LABELS, PUBLISHED, Rows, reproduce_semi_supervised, summary


def test_labels_are_drawn_evenly():
    labels = np.repeat(np.arange(10), 50)
    few = Rows(np.zeros((500, 2)), labels, np.zeros((1, 2)), labels[:1]).some_labels(100, 0)
    assert np.bincount(few[few >= 0]).tolist() == [10] * 10
    assert np.array_equal(few[few >= 0], labels[few >= 0])


def test_published_errors_are_shown_beside_those_found():
    text = summary({"m1+m2": {"100": {"0": {"error": 4.0}, "1": {"error": 5.0}}}})
    assert "| M1+M2 | 100 | 2 | 4.50 | 0.71 | 3.33 ± 0.14 |" in text
    assert all(set(rows) == set(NUM_LABELS) for rows in PUBLISHED.values())


@pytest.mark.thorough
def test_fits_are_written_and_not_repeated(tmp_path, monkeypatch):
    paths = reproduce_semi_supervised("tiny", tmp_path)
    monkeypatch.setattr(semi_supervised, "VAEClassifier", None)  # calling it would fail
    reproduce_semi_supervised("tiny", tmp_path)

    assert [path.name for path in paths] == ["semi-supervised.md", "semi-supervised.json"]
    found = json.loads((tmp_path / "semi-supervised.json").read_text(encoding="utf-8"))["results"]
    assert {model: list(by_number) for model, by_number in found.items()} == {"m2": ["100"], "m1+m2": ["100"]}
