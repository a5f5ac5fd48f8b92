"""`aevb fit --target` and `aevb predict`."""

import csv
import json

import numpy as np
import pytest

from aevb.cli import run

RNG = np.random.default_rng(0)
SMALL = ["--hidden", "8", "--max-epochs", "1", "--optimizer", "sgd", "--quiet"]


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    age, sex = RNG.normal(40, 10, 200), RNG.choice(["F", "M"], 200)
    income = 100 + age + 5 * RNG.normal(size=200)
    with open("people.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person_id", "age", "sex", "income"])
        for number, row in enumerate(zip(age, sex, income, strict=True)):
            writer.writerow([f"p{number:03}", f"{row[0]:.3f}", row[1] if number % 3 else "", f"{row[2]:.3f}"])
    return tmp_path


def predicted(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.thorough
def test_numbers_are_predicted_by_a_regressor(people):
    assert run(["fit", "people.csv", "--target", "income", "--num-samples", "2", *SMALL]) == 0
    assert json.loads((people / "runs/people/metrics.json").read_text())["estimator"] == "VAERegressor"
    assert "log p(y|x)" in (people / "runs/people/report.html").read_text()
    assert run(["predict", "runs/people", "people.csv", "--quiet"]) == 0
    rows = predicted("runs/people/predictions.csv")
    assert len(rows) == 200
    assert (rows[7]["row"], rows[7]["person_id"]) == ("7", "p007")
    assert all(float(row["income_low"]) <= float(row["income_high"]) for row in rows)


@pytest.mark.thorough
def test_labels_are_predicted_by_a_classifier(people, capsys):
    assert run(["fit", "people.csv", "--target", "sex", "--latent-dim", "2", *SMALL[:-1]]) == 0
    said = capsys.readouterr()
    assert "To leave columns out: --drop-columns" in said.out  # below the columns, as without a target
    assert "income" not in said.err
    assert "  report.html    the report, with all of this" in said.out
    assert "Explore the model interactively with: aevb explore runs/people\n" in said.out
    assert "predicting the most frequent label of the training rows: 0." in said.out
    assert "predicting the label frequencies of the training rows: 0.6" in said.out
    assert json.loads((people / "runs/people/metrics.json").read_text())["estimator"] == "VAEClassifier"
    (people / "runs/people/report.html").unlink()
    assert run(["report", "runs/people", "--quiet"]) == 0
    assert "calibration" in (people / "runs/people/report.html").read_text()
    assert run(["explore", "runs/people", "--no-open", "--quiet"]) == 0
    assert (people / "runs/people/explorer.html").exists()
    assert run(["predict", "runs/people", "people.csv", "--output", "out.csv", "--quiet"]) == 0
    rows = predicted("out.csv")
    assert {row["sex"] for row in rows} <= {"F", "M"}
    assert (rows[7]["row"], rows[7]["person_id"]) == ("7", "p007")
    assert float(rows[0]["p(F)"]) + float(rows[0]["p(M)"]) == pytest.approx(1, abs=1e-5)
    assert run(["fit", "--config", "runs/people/config.toml"]) == 0
    said = capsys.readouterr().out
    assert "runs/people already contains a run; this one is written to runs/people-2." in said
    metrics = [json.loads((people / f"runs/{name}/metrics.json").read_text()) for name in ("people", "people-2")]
    assert metrics[0]["log_loss"] == metrics[1]["log_loss"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "people.csv", "--target", "incom"], "Did you mean 'income'?"),
        (["fit", "people.csv", "--target", "income", "--learner", "mcem"], "VAERegressor has no such argument"),
        (["fit", "people.csv", "--target", "income", "--label-column", "sex"], "cannot be combined with --target"),
        (["fit", "missing.csv", "--target", "income"], "--target needs a"),
        (["fit", "people.csv", "--conditional"], "In Python"),
        (["fit", "people.csv", "--target", "income", "--column", "age=count"], "cannot be combined with --target"),
        (["fit", "people.csv", "--target", "income", "--test-fraction", "2"], "--test-fraction"),
    ],
)
def test_what_is_refused(people, capsys, arguments, message):
    assert run(arguments) == 2
    assert message in capsys.readouterr().err
    assert not (people / "runs").exists()


@pytest.mark.parametrize("option", [["--time", "age"], ["--sequence", "sex"], ["--column", "age=count"]])
def test_options_of_others_are_refused_beside_a_file_with_a_target(people, capsys, option):
    (people / "target.toml").write_text('[data]\nsource = "people.csv"\ntarget = "income"\n')
    assert run(["fit", "--config", "target.toml", *option]) == 2
    assert f"{option[0]} cannot be combined with --target" in capsys.readouterr().err
