"""The experiment on anomalies: splits, ECOD by its definition, and a call that resumes."""

import json

import numpy as np
import pytest

from aevb.experiments.anomalies import reproduce_anomalies
from aevb.experiments.anomaly_sets import ANOMALY_SETS, split
from aevb.experiments.detectors import DETECTORS, OURS, ecod

OTHERS = ("isolation forest", "ECOD", "LOF")


@pytest.mark.parametrize("name", ANOMALY_SETS)
@pytest.mark.parametrize("contaminated", [False, True])
def test_a_twentieth_of_contaminated_training_rows_are_anomalies(name, contaminated):
    rows, is_anomaly = ANOMALY_SETS[name].read()
    assert np.isfinite(rows).all()
    assert len(rows) == len(is_anomaly)
    found = split(rows, is_anomaly, contaminated, 0)
    assert len(found.train) + len(found.test) == len(rows)
    num_odd = is_anomaly.sum() - found.is_anomaly.sum()
    assert num_odd == pytest.approx(0.05 * len(found.train) * contaminated, abs=0.51)
    assert found.is_anomaly.sum() >= 20
    np.testing.assert_allclose(found.train.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(found.train.std(axis=0), 1)


def test_ecod_counts_the_rows_beyond_each_entry():
    rng = np.random.default_rng(0)
    train, test = rng.integers(5, size=(20, 3)).astype(float), rng.integers(5, size=(10, 3)).astype(float)
    for score, row in zip(ecod(train, test), test, strict=True):
        known = np.concatenate([train, [row]])
        below, above = np.mean(known <= row, axis=0), np.mean(known >= row, axis=0)
        assert score == pytest.approx(-np.log(np.minimum(below, above)).sum())


@pytest.mark.parametrize("method", OTHERS)
def test_detectors_give_far_rows_the_highest_scores(method):
    rng = np.random.default_rng(0)
    train, test = rng.normal(size=(200, 3)), np.concatenate([rng.normal(size=(20, 3)), np.full((2, 3), 8.0)])
    assert {*np.argsort(DETECTORS[method].score(train, test, 0))[-2:]} == {20, 21}


def test_an_interrupted_call_resumes_and_leaves_out_what_is_not_installed(tmp_path, monkeypatch):
    ran, notes = [], []

    def score(train, test, seed):
        ran.append((train.shape[1], seed))
        if len(ran) == 2:
            raise KeyboardInterrupt
        return -np.abs(test).sum(axis=1)

    monkeypatch.setitem(DETECTORS, OURS, DETECTORS[OURS]._replace(score=score))
    monkeypatch.setitem(DETECTORS, "VAE of PyOD", DETECTORS["VAE of PyOD"]._replace(package="no_such_package"))
    watch = type("Watch", (), {"note": staticmethod(notes.append)})()
    with pytest.raises(KeyboardInterrupt):
        reproduce_anomalies("quick", tmp_path, tables=("iris",), methods=("ECOD", OURS))
    reproduce_anomalies("quick", tmp_path, tables=("iris",), methods=("ECOD", "VAE of PyOD", OURS), watch=watch)
    assert ran == [(4, 0), (4, 1), (4, 1), (4, 0), (4, 1)]
    assert "VAE of PyOD: left out, needs the package no_such_package: pip install no_such_package" in notes
    results = json.loads((tmp_path / "anomalies.json").read_text(encoding="utf-8"))["results"]["iris"]
    assert [*results] == ["normal", "contaminated"]
    assert [*results["normal"][OURS]] == ["0", "1"]
    lines = (tmp_path / "anomalies.md").read_text(encoding="utf-8").splitlines()
    area = np.mean([found["auc"] for found in results["normal"]["ECOD"].values()])
    assert area > 0.9
    assert lines[2].startswith(f"| Iris | normal | **{area:.3f}** |")
    assert lines[-1] == "| average rank |  | 1.0 | 2.0 |"
