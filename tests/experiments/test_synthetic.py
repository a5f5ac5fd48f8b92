"""The experiment on synthetic rows: distances and associations in closed form, and a call that leaves out rivals."""

import json

import numpy as np
import pandas
import pytest
from scipy.stats.contingency import association

from aevb.experiments import synthetic
from aevb.experiments.fidelity import associations, classifier_auc, column_distances
from aevb.experiments.synthesizers import OURS, SYNTHESIZERS, TVAE
from aevb.experiments.synthetic import Case, reproduce_synthetic, split

OTHERS = tuple(name for name in SYNTHESIZERS if name != OURS)


def made_up(num_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=num_rows)
    label = np.where(x + 0.5 * rng.normal(size=num_rows) > 0, "yes", "no")
    return pandas.DataFrame({"x": x, "group": rng.choice(["a", "b", "c"], num_rows), "label": label})


def test_associations_are_those_of_scipy_and_of_an_analysis_of_variance():
    frame = made_up()
    frame["y"] = frame["x"] + np.random.default_rng(1).normal(size=300)
    found = associations(frame)
    assert found["x", "y"] == pytest.approx(np.corrcoef(frame["x"], frame["y"])[0, 1])
    counts = pandas.crosstab(frame["group"], frame["label"]).to_numpy()
    assert found["group", "label"] == pytest.approx(association(counts, method="cramer"))
    within = sum(part["x"].var(ddof=0) * len(part) for _, part in frame.groupby("label"))
    assert found["x", "label"] == pytest.approx(np.sqrt(1 - within / (frame["x"].var(ddof=0) * 300)))


def test_a_constant_column_has_no_association():
    frame = made_up().assign(group="a")
    assert associations(frame)["x", "group"] == associations(frame)["group", "label"] == 0


def test_distances_count_labels_that_are_not_in_the_other_table():
    real, other = made_up(), made_up().assign(group="d")
    distances = column_distances(real, other)
    assert distances == {"x": 0.0, "group": pytest.approx(1.0), "label": 0.0}


def test_a_classifier_learns_from_real_rows_and_nothing_from_independent_columns():
    """1,000 rows, fixed seeds. The AUC of independent columns has a standard deviation of about 0.06 around 0.5."""
    train, test = made_up(1000, 1), made_up(1000, 2)
    independent = SYNTHESIZERS["independent columns"].make(train, 1000, 0)
    assert max(column_distances(train, independent).values()) < 0.1
    assert classifier_auc(train, test, "label", "yes") > 0.85
    assert 0.25 < classifier_auc(independent, test, "label", "yes") < 0.75
    assert classifier_auc(train.assign(label="no"), test, "label", "yes") == 0.5


def test_train_and_test_rows_are_disjoint():
    frame = pandas.DataFrame({"row": np.arange(90)})
    train, test = split(frame, 50, 0)
    assert (len(train), len(test)) == (50, 30)
    assert not {*train["row"]} & {*test["row"]}


def test_methods_without_their_package_are_left_out_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr(synthetic, "CASES", {"Adult": Case("Adult", made_up, "label", "yes")})
    monkeypatch.setitem(SYNTHESIZERS, TVAE, SYNTHESIZERS[TVAE]._replace(package="no_such_package"))
    notes = []
    watch = type("Watch", (), {"note": staticmethod(notes.append)})()
    reproduce_synthetic("tiny", tmp_path, tables=("Adult",), methods=OTHERS, watch=watch)
    assert "TVAE: left out, needs the package no_such_package: pip install no_such_package" in notes
    results = json.loads((tmp_path / "synthetic.json").read_text(encoding="utf-8"))["results"]["Adult"]
    assert [*results] == ["real rows", "independent columns"]
    assert results["real rows"]["auc"] > results["independent columns"]["auc"]
    real, drawn = zip(*results["independent columns"]["pairs"].values(), strict=True)
    difference = results["independent columns"]["association_difference"]
    assert abs(np.mean(np.abs(np.subtract(real, drawn))) - difference) < 1e-3
    assert (results["real rows"]["num_train"], results["real rows"]["num_test"]) == (200, 100)
    assert "| Adult | 200 + 100 | real rows |" in (tmp_path / "synthetic.md").read_text(encoding="utf-8")
