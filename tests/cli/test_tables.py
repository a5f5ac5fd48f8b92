"""The commands on a table with text, whole numbers, dates and missing entries; the tests share one tiny run."""

import csv
import json
import tomllib

import numpy as np
import pandas as pd
import pytest

from aevb import load
from aevb.cli import run
from aevb.cli.kinds import with_kinds
from aevb.data.frames import read_frame

pytestmark = pytest.mark.thorough

TINY = ["--latent-dim", "2", "--hidden", "4", "--max-epochs", "2", "--optimizer", "sgd"]


def people(num_rows=80):
    """Weight is ten times the age; codes are text that looks like numbers, with leading zeros."""
    rng = np.random.default_rng(0)
    age = rng.normal(40, 10, num_rows).round(2)
    frame = pd.DataFrame(
        {
            "id": np.arange(num_rows) + 500,
            "age": age,
            "weight": (10 * age).round().astype(int),
            "sex": rng.choice(["F", "M"], num_rows),
            "code": rng.choice(["007", "012", "345"], num_rows),
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, num_rows), "D"),
            "note": "the same",
            "group": rng.choice(["a", "b"], num_rows),
        }
    )
    frame.loc[::9, "sex"] = None
    frame["weight"] = frame["weight"].astype("Int64")
    frame.loc[::7, "weight"] = pd.NA
    return frame


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The folder of a run, and what was printed."""
    out = tmp_path_factory.mktemp("tables")
    people().to_csv(out / "people.csv", index=False)
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aevb.cli.console.print_line", lambda text, stream: said.append(text))
        options = ["--label-column", "group", "--column", "age=student-t", "--column", "note=drop"]
        assert run(["fit", str(out / "people.csv"), *TINY, *options, "--out", str(out)]) == 0
    return out / "people", "\n".join(said)


@pytest.fixture
def folder(fitted):
    return fitted[0]


def test_a_table_is_learned_and_what_its_columns_are_is_said(fitted):
    folder, said = fitted
    assert "people.csv, 80 rows of 7 columns: 72 for training, 8 held out." in said
    lines = {line.split()[0]: line.split()[1:] for line in said.splitlines() if line.startswith("  ")}
    kinds = {name: lines[name][0] for name in ("age", "weight", "sex", "code", "joined")}
    assert kinds == {
        "age": "student-t", "weight": "gaussian", "sex": "binary", "code": "categorical", "joined": "date"
    }  # fmt: skip
    assert lines["id"][:2] == lines["note"][:2] == ["left", "out"]
    assert said.index("Columns: name, kind") < said.index("held-out rows, nats per row")
    assert said.splitlines()[-1] == f"Results are in {folder}. Open {folder / 'report.html'}"
    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["model"]["likelihood"] == {"age": "student-t", "note": "drop"}
    assert config["run"]["columns"] == ["id", "age", "weight", "sex", "code", "joined", "note"]
    written = {path.name for path in folder.iterdir()}
    pictures = {"marginals.png", "associations.png", "missing.png", "nearest_rows.png", "latent.png"}
    assert pictures | {"model", "history.csv", "metrics.json", "report.html"} <= written
    assert "explorer.html" not in written


def test_the_report_shows_columns_associations_neighbours_and_strange_rows(folder):
    metrics = json.loads((folder / "metrics.json").read_text())
    assert [column["column"] for column in metrics["columns"]][:3] == ["id", "age", "weight"]
    assert metrics["columns"][0]["total_variation"] is None
    assert 0 <= metrics["columns"][1]["total_variation"] <= 1
    assert metrics["association"]["rows"] == 80
    assert metrics["nearest_training_row"]["held_out_rows"] == 8
    original = people()
    strange = metrics["strangest_rows"]
    assert [row["score"] for row in strange] == sorted((row["score"] for row in strange), reverse=True)
    for row in strange:  # rows are counted in the file, and their entries are those of the file
        for entry in row["because"]:
            assert str(original.loc[row["row"], entry["column"]]).startswith(entry["value"])
    page = (folder / "report.html").read_text(encoding="utf-8")
    for said in ("The columns", "an identifier", "Associations between columns", "The strangest held-out rows",
                 "equal a training row", "independent columns, no latent variables"):  # fmt: skip
        assert said in page


def test_samples_have_the_types_ranges_and_labels_of_the_table(folder, tmp_path, capsys):
    output, original = tmp_path / "new.csv", people()
    assert run(["sample", str(folder), "--rows", "60", "--output", str(output)]) == 0
    assert capsys.readouterr().out == f"Wrote 60 draws to {output}\n"
    drawn, again = read_frame(output), tmp_path / "again.parquet"
    assert list(drawn.columns) == ["age", "weight", "sex", "code", "joined"]
    assert drawn["weight"].dtype == "int64"
    assert drawn["weight"].between(original["weight"].min(), original["weight"].max()).all()
    assert drawn["joined"].between(original["joined"].min(), original["joined"].max()).all()
    assert (drawn["joined"] == drawn["joined"].dt.normalize()).all()
    assert set(drawn["sex"]) == {"F", "M"}
    assert set(drawn["code"]) == {"007", "012", "345"}
    assert run(["sample", str(folder), "--num-samples", "60", "--output", str(again)]) == 0  # the old name
    assert pd.read_parquet(again)["code"].tolist() == drawn["code"].tolist()


def test_rows_are_drawn_given_columns(folder, tmp_path, capsys):
    output = tmp_path / "new.csv"
    given = ["--given", "sex=F", "--given", "age=30:40", "--given", "code=007,345", "--given", "joined=2020-03-01:"]
    assert run(["sample", str(folder), "--rows", "30", *given, "--output", str(output), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["given"] == given[1::2]
    drawn = read_frame(output)
    assert set(drawn["sex"]) == {"F"}
    assert drawn["age"].between(30, 40).all()
    assert set(drawn["code"]) == {"007", "345"}
    assert drawn["joined"].min() >= pd.Timestamp("2020-03-01")


def test_missing_entries_are_filled_in_and_everything_else_is_kept(folder, tmp_path, capsys):
    holes, output = people(10).drop(columns="code"), tmp_path / "filled.csv"
    holes["group"] = "b"
    holes.to_csv(tmp_path / "holes.csv", index=False)
    assert run(["inpaint", str(folder), str(tmp_path / "holes.csv"), "--output", str(output)]) == 0
    said = capsys.readouterr()
    assert "Filled in 14 missing values, in 10 of 10 rows." in said.out  # 2 of weight, 2 of sex, 10 of code
    assert "holes.csv lacks 'code'" in said.err
    filled, before = read_frame(output), read_frame(tmp_path / "holes.csv")
    assert list(filled.columns) == [*before.columns, "code"]
    assert not filled.isna().any().any()
    assert filled["weight"].dtype == "int64"
    for name in before.columns:
        seen = before[name].notna()
        assert (filled[name][seen] == before[name][seen]).all()


def test_text_that_looks_like_numbers_in_another_file_stays_text(folder, tmp_path):
    some = people()
    some = some[some["code"] == "345"]
    some.to_csv(tmp_path / "some.csv", index=False)
    assert run(["encode", str(folder), str(tmp_path / "some.csv"), "--quiet"]) == 0
    with open(folder / "codes.csv", newline="") as file:
        written = list(csv.DictReader(file))
    codes = load(folder / "model").transform(some.drop(columns="group"))
    np.testing.assert_allclose([[float(row["z1"]), float(row["z2"])] for row in written], codes, rtol=1e-5)
    assert [row["group"] for row in written] == some["group"].tolist()


def test_anomalies_come_with_the_columns_that_made_them_so(folder, tmp_path, capsys):
    strange = people()
    strange.loc[12, "age"] = 4000.0
    strange.to_csv(tmp_path / "strange.csv", index=False)
    output = tmp_path / "ranked.csv"
    arguments = ["anomalies", str(folder), str(tmp_path / "strange.csv"), "--top", "2", "--output", str(output)]
    assert run(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["rank", "row", "score", "group", "because", "of"]
    assert lines[1].split()[:2] == ["1", "12"]
    assert "age=4000 (" in lines[1]
    with open(output, newline="") as file:
        first, *others = csv.DictReader(file)
    assert (first["column_1"], first["value_1"]) == ("age", "4000")
    assert float(first["nats_1"]) > float(first["nats_2"]) > float(first["nats_3"])
    assert len(others) == 79


def test_evaluate_and_report_use_the_held_out_rows(folder, capsys, monkeypatch):
    metrics = json.loads((folder / "metrics.json").read_text())
    assert run(["evaluate", str(folder), "--num-samples", "500", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["log_likelihood"]["value"] == pytest.approx(metrics["held_out_log_likelihood"]["value"], abs=1e-3)
    assert found["lower_bound"]["value"] == pytest.approx(metrics["held_out_lower_bound"]["value"], abs=1e-4)
    monkeypatch.setattr("aevb.report.pictures.PICTURES", {})
    (folder / "report.html").rename(folder / "first.html")
    assert run(["report", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["strangest_rows"] == metrics["strangest_rows"]
    (folder / "first.html").replace(folder / "report.html")


@pytest.mark.thorough
def test_the_interactive_page_of_a_table_is_linked_from_its_report(folder, capsys):
    assert run(["explore", str(folder), "--no-open", "--rows", "20"]) == 0
    assert "The interactive page is" in capsys.readouterr().out
    assert '<a href="explorer.html">' in (folder / "report.html").read_text(encoding="utf-8")
    (folder / "explorer.html").unlink()


@pytest.mark.thorough
def test_a_run_on_a_table_is_resumed_and_its_config_repeats_it(fitted, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("aevb.report.pictures.PICTURES", {})
    config = ["--config", str(fitted[0] / "config.toml"), "--out", str(tmp_path), "--quiet"]
    assert run(["fit", *config, "--name", "one", "--max-epochs", "4"]) == 0
    assert run(["fit", *config, "--name", "two"]) == 0
    assert run(["fit", "--resume", str(tmp_path / "two"), "--max-epochs", "4", "--quiet"]) == 0
    frame = people().drop(columns="group")
    one, two = (load(tmp_path / name / "model") for name in ("one", "two"))
    assert one.likelihood == {"age": "student-t", "note": "drop"}
    np.testing.assert_array_equal(one.transform(frame), two.transform(frame))
    capsys.readouterr()
    assert run(["fit", "--resume", str(tmp_path / "two"), "--column", "age=gaussian"]) == 2
    assert "remove --column" in capsys.readouterr().err


def test_kinds_by_column():
    assert with_kinds({"age": "gaussian", "id": "drop"}, ["age=bernoulli"]) == {"age": "binary", "id": "drop"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--column", "age"], "--column age: expected NAME=KIND"),
        (["--column", "age="], "--column age=: expected NAME=KIND"),
        (["--column", "age=gausian"], "--column age='gausian' is not a kind of column. Did you mean 'gaussian'?"),
        (["--column", "age=date", "--column", "age=drop"], "--column age=drop: 'age' was given twice"),
        (["--column", "agee=date"], "there is no column 'agee'"),
        (["--column", "sex=gaussian"], "column 'sex' cannot be 'gaussian'"),
        (["--column", "age=drop", "--likelihood", "gaussian"], "--likelihood gaussian is for all columns"),
        (["--drop-columns", "agee"], "there is no column 'agee'"),
        (["--label-column", "agee"], "there is no column 'agee'"),
        (["--image-shape", "2", "3"], "image_shape=(2, 3) is for images"),
        (["--binarization", "static"], "binarization='static' is for grey levels"),
    ],
)
def test_bad_options_of_fit_get_one_line_and_nothing_is_written(options, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people(40).to_csv("people.csv", index=False)
    assert run(["fit", "people.csv", *options]) == 2
    err = capsys.readouterr().err
    assert err.startswith("aevb: ")
    assert said in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.rglob("*.*")] == ["people.csv"]


def test_kinds_by_column_are_for_tables(capsys):
    assert run(["fit", "digits", "--column", "x0=drop"]) == 2
    assert "kinds by column are for .csv, .tsv and .parquet files" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sample", "--given", "sex"], "--given sex: expected NAME=VALUE"),
        (["sample", "--given", "sex=X"], "column 'sex' has no value 'X'; its values are 'F', 'M'"),
        (["sample", "--given", "age=old"], "--given age=old: the column holds numbers"),
        (["sample", "--given", "joined=soon"], "the column holds dates. Give one, or a range such as joined=2024"),
        (["sample", "--given", "age=40:30"], "nothing lies in the range (40.0, 30.0)"),
        (["sample", "--given", "size=3"], "there is no column 'size'"),
        (["sample", "--output", "x.npy"], "its name must end in .csv, .parquet"),
        (["encode", "digits"], "digits: this run learned a table, so it needs a .csv"),
        (["inpaint", "other.csv"], "other.csv: X lacks 'age'"),
        (["inpaint", "people.csv", "--method", "hmc"], "filled in by importance sampling"),
        (["denoise", "people.csv"], "is a run on a table"),
    ],
)
def test_bad_input_of_other_commands_gets_one_line(folder, arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.csv").write_text("a,b\n1,x\n2,y\n")
    people(10).to_csv("people.csv", index=False)
    command, *others = arguments
    assert run([command, str(folder), *others]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
