"""Every command, end to end, on scikit-learn's digits and wine with tiny networks; they share one run each."""

import csv
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from sklearn.datasets import load_wine

from aevb import load
from aevb.cli import app, run
from aevb.cli.options import OF_DATA, OPTIONS, settings, written
from aevb.data import load_dataset

DIGITS = load_dataset("digits").rows
TINY = ["--latent-dim", "2", "--hidden", "10", "--max-epochs", "2", "--optimizer", "sgd"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run on binary draws of the digits."""
    out = tmp_path_factory.mktemp("runs")
    assert run(["fit", "digits", *TINY, "--binarization", "static", "--out", str(out), "--quiet"]) == 0
    return out / "digits"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A run on a table with words for labels."""
    out = tmp_path_factory.mktemp("tables")
    frame = load_wine(as_frame=True).frame
    frame["target"] = "class " + frame["target"].astype(str)
    frame.to_csv(out / "wine.csv", index=False)
    options = [
        "--label-column",
        "target",
        "--latent-dim",
        "3",
        "--hidden",
        "10",
        "--max-epochs",
        "2",
        "--optimizer",
        "sgd",
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(out)
        assert run(["fit", "wine.csv", *options, "--out", ".", "--name", "mine", "--quiet"]) == 0
    return out / "mine"


@pytest.mark.thorough
def test_a_config_repeats_a_run_bit_for_bit(folder, tmp_path, capsys, monkeypatch):
    capsys.readouterr()
    monkeypatch.setattr("aevb.report.pictures.draw_pictures", lambda *_: [])  # the first run has drawn them
    again = ["fit", "--config", str(folder / "config.toml"), "--out", str(tmp_path), "--name", "again", "--json"]
    assert run(again) == 0
    metrics = json.loads(capsys.readouterr().out)
    assert metrics["folder"] == str(tmp_path / "again")
    first, second = load(folder / "model"), load(tmp_path / "again" / "model")
    np.testing.assert_array_equal(first.transform(DIGITS), second.transform(DIGITS))
    tables = [tomllib.loads((where / "config.toml").read_text()) for where in (folder, tmp_path / "again")]
    assert tables[0]["model"] == tables[1]["model"]
    assert tables[0]["data"] == tables[1]["data"] == {
        "source": "digits", "binarization": "static", "test_fraction": 0.1, "polarity": "ink", "drop_missing": False,
        "drop_columns": [], "seed": 0, "colour": False, "skip_broken": False,
    }  # fmt: skip
    assert metrics["held_out_lower_bound"]["binarization"] == "static"


def test_options_are_the_arguments_of_vae():
    import inspect

    from aevb import VAE

    signature = inspect.signature(VAE).parameters
    assert set(signature) - set(OPTIONS) == {"encoder", "decoder", "progress", *OF_DATA}
    assert all(option.default == signature[name].default for name, option in OPTIONS.items())
    chosen = settings({"latent_dim": 3}, {"latent_dim": 4, "patience": "none", "hidden": [5, 6]})
    assert (chosen["latent_dim"], chosen["patience"], chosen["hidden"]) == (3, None, (5, 6))
    assert (
        settings({"latent_dim": "auto"}, {})["latent_dim"]
        == settings({}, {"latent_dim": "auto"})["latent_dim"]
        == "auto"
    )
    assert settings({}, written(chosen)) == chosen


def test_sample(folder, tmp_path, capsys):
    assert (
        run(["sample", str(folder), "--num-samples", "7", "--mean", "--output", str(tmp_path / "new" / "x.npy")]) == 0
    )
    rows = np.load(tmp_path / "new" / "x.npy")
    assert rows.shape == (7, 64)
    np.testing.assert_array_equal(rows, load(folder / "model").sample(7, mean=True, random_state=0))
    assert capsys.readouterr().out.splitlines()[-1] == f"Wrote 7 means to {tmp_path / 'new' / 'x.npy'}"
    assert run(["sample", str(folder), "--output", str(tmp_path / "x.png")]) == 0
    assert imread(tmp_path / "x.png").std() > 0


def test_encode_and_reconstruct(folder, tmp_path, capsys):
    levels = (DIGITS[:20] * 255).astype(np.uint8)
    np.save(tmp_path / "x.npy", levels)
    assert run(["encode", str(folder), str(tmp_path / "x.npy"), "--output", str(tmp_path / "z.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"output": str(tmp_path / "z.csv"), "rows": 20, "columns": 2}
    assert (tmp_path / "z.csv").read_text().startswith("z1,z2\n")
    codes = np.loadtxt(tmp_path / "z.csv", delimiter=",", skiprows=1)
    from aevb.data import binarize

    # The model's data are binary draws, and so are these, with the same seed.
    expected = load(folder / "model").transform(binarize(levels, "static", 0))
    np.testing.assert_allclose(codes, expected, rtol=1e-5, atol=1e-6)
    assert run(["reconstruct", str(folder), str(tmp_path / "x.npy")]) == 0
    assert np.load(folder / "reconstructed_rows.npy").shape == (20, 64)
    capsys.readouterr()
    assert run(["reconstruct", str(folder), str(tmp_path / "x.npy"), "--output", str(tmp_path / "x.png")]) == 0
    assert imread(tmp_path / "x.png").std() > 0
    assert capsys.readouterr().out == f"Drew 20 rows (original above reconstruction) to {tmp_path / 'x.png'}\n"
    np.save(tmp_path / "x.npy", np.repeat(levels, 3, axis=0))
    assert (
        run(["reconstruct", str(folder), str(tmp_path / "x.npy"), "--output", str(tmp_path / "x.png"), "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["rows_shown"] == 50
    np.save(tmp_path / "x.npy", levels[:, :5])
    assert run(["encode", str(folder), str(tmp_path / "x.npy")]) == 2
    assert "5 features" in capsys.readouterr().err


@pytest.mark.slow
def test_denoise_inpaint_and_super_resolve(tmp_path, capsys):
    """Each improves on its input; the model was trained on grey digits for thirty epochs."""
    options = ["--latent-dim", "10", "--hidden", "100", "--max-epochs", "30", "--name", "run", "--out", str(tmp_path)]
    assert run(["fit", "digits", *options, "--quiet"]) == 0
    generator, X, where = np.random.default_rng(0), DIGITS[:40], str(tmp_path / "run")
    noisy = X + 0.3 * generator.normal(size=X.shape).astype(np.float32)
    holes = np.where(generator.random(X.shape) < 0.3, np.nan, X)
    small = X.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    large = np.kron(small.reshape(-1, 4, 4), np.ones((2, 2))).reshape(-1, 64)
    guesses = {
        "denoise": (noisy, ["--level", "0.3"], noisy),
        "inpaint": (holes, [], np.where(np.isnan(holes), X.mean(axis=0), holes)),
        "super-resolve": (small, ["--factor", "2"], large),
    }
    for command, (given, more, baseline) in guesses.items():
        source, result = tmp_path / f"{command}.npy", tmp_path / "result.npy"
        np.save(source, given)
        assert run([command, where, str(source), *more, "--output", str(result)]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == f"Wrote 40 rows of 64 to {result}"
        assert np.mean((np.load(result) - X) ** 2) < 0.8 * np.mean((baseline - X) ** 2)
        assert run([command, where, str(source), *more, "--output", str(tmp_path / "x.png")]) == 0
        assert imread(tmp_path / "x.png").std() > 0


def evaluate(folder, method, capsys):
    # As many samples as `fit` uses: one program serves both.
    options = ["--method", method, "--num-samples", "500", "--json"]
    assert run(["evaluate", str(folder), *options]) == 0
    found = json.loads(capsys.readouterr().out)
    kept = json.loads((folder / "evaluation.json").read_text())[f"held out, {method}"]
    assert kept["log_likelihood"] == found["log_likelihood"]
    assert found["log_likelihood"]["binarization"] == found["lower_bound"]["binarization"] == "static"
    return found["log_likelihood"], found["lower_bound"]


def test_evaluate_agrees_with_the_report(folder, capsys):
    likelihood, bound = evaluate(folder, "laplace", capsys)
    metrics = json.loads((folder / "metrics.json").read_text())
    assert likelihood["value"] == pytest.approx(metrics["held_out_log_likelihood"]["value"], abs=1e-3)
    assert bound["value"] < likelihood["value"]


@pytest.mark.slow
def test_evaluate_by_two_methods_keeps_both(folder, capsys):
    (importance, _), (quadrature, _) = (evaluate(folder, method, capsys) for method in ("importance", "quadrature"))
    gap = importance["value"] - quadrature["value"]
    assert abs(gap) < 6 * importance["std_error_of_sampling"] + 0.05
    assert len(json.loads((folder / "evaluation.json").read_text())) == 2


def test_plot_redraws_the_pictures(folder, capsys, monkeypatch):
    pictures = sys.modules["aevb.report.pictures"].PICTURES
    monkeypatch.setattr("aevb.report.pictures.PICTURES", {"samples": pictures["samples"]})
    (folder / "samples.svg").unlink()
    assert run(["plot", str(folder)]) == 0
    assert "samples.png" in capsys.readouterr().out
    assert (folder / "samples.svg").exists()


@pytest.mark.slow
def test_a_report_is_rewritten(folder, capsys):
    for name in ("report.html", "metrics.json", "samples.png"):
        (folder / name).unlink()
    assert run(["report", str(folder)]) == 0
    assert capsys.readouterr().out == f"The report is {folder / 'report.html'}\n"
    assert "held_out_lower_bound" in json.loads((folder / "metrics.json").read_text())


def test_the_report_is_self_contained_and_describes_its_run(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", page)
    assert "http" not in re.sub(r"http-equiv", "", page)
    assert page.count("data:image/png;base64,") == 6
    metrics = json.loads((folder / "metrics.json").read_text())
    for said in (
        f"{metrics['held_out_lower_bound']['value']:,.1f}".replace("-", "−"),
        f"{metrics['held_out_log_likelihood']['value']:,.1f}".replace("-", "−"),
        "binary draws of the grey levels, made once",
        "179 of 1797 rows",
        shlex.join(["aevb", "fit", "--config", str(folder / "config.toml")]),
        "Is it memorizing?",
        metrics["versions"]["jax"],
    ):
        assert said in page


def test_a_run_can_be_used_from_any_folder(table, tmp_path, monkeypatch, capsys):
    """The data were given by a relative path."""
    copied = shutil.copytree(table, tmp_path / "copy")
    config = (table / "config.toml").read_text()
    assert f'source = "{table.parent / "wine.csv"}"' in config
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("aevb.report.pictures.PICTURES", {})
    for folder in (table, copied):
        assert run(["report", str(folder)]) == 0
    (copied / "config.toml").write_text(config.replace("wine.csv", "gone.csv"))
    capsys.readouterr()
    assert run(["report", "copy"]) == 2
    assert "if they have moved, edit source in copy/config.toml" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../../escape", "a/b", "/tmp/x", "..", ".", "", "a\\b"])
def test_a_run_folder_stays_inside_the_out_folder(name, tmp_path, capsys):
    assert run(["fit", "digits", "--name", name, "--out", str(tmp_path / "runs")]) == 2
    assert f"expected the name of a folder inside {tmp_path / 'runs'}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_folder_of_a_run_is_named_like_its_data():
    from aevb.cli.fit import _folder_name

    assert _folder_name(None, "data/wine.csv", "runs") == "wine"
    assert _folder_name(None, "..", "runs") not in ("..", "")
    assert _folder_name(None, "/", "runs") == "data"


def test_errors_are_json_with_the_json_option(tmp_path, capsys):
    for command in (["sample", str(tmp_path), "--json"], ["sample", "--jsn", "--json"], ["fit", "--json"]):
        assert run(command) == 2
        captured = capsys.readouterr()
        (line,) = captured.out.splitlines()
        assert captured.err == f"aevb: {json.loads(line)['error']}\n"
    assert run(["sample", str(tmp_path)]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.filterwarnings("error")
def test_evaluating_some_rows_of_16_bit_pictures_says_which(folder, tmp_path, capsys):
    from PIL import Image

    for number, image in enumerate(DIGITS[:6]):
        Image.fromarray((image * 65535).astype(np.uint16).reshape(8, 8)).save(tmp_path / f"{number}.png")
    arguments = ["evaluate", str(folder), str(tmp_path), "--rows", "4", "--method", "importance"]
    assert run([*arguments, "--num-samples", "5"]) == 0
    said = capsys.readouterr()
    assert f"4 rows (evenly spread over the rows of {tmp_path}, 6 in all" in said.out
    assert "Note: " in said.err
    assert "16-bit" in said.err
    assert "UserWarning" not in said.err


def test_codes_are_written_with_labels_and_file_names(folder, table, tmp_path, capsys):
    from PIL import Image

    for number, image in enumerate(DIGITS[:4]):
        place = tmp_path / "pictures" / "ab"[number % 2] / f"one, {number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image * 255).astype(np.uint8).reshape(8, 8)).save(place)
    output = tmp_path / "z.csv"
    assert run(["encode", str(folder), str(tmp_path / "pictures"), "--output", str(output)]) == 0
    with open(output, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["file"], row["label"]) for row in rows] == [
        ("a/one, 0.png", "a"), ("a/one, 2.png", "a"), ("b/one, 1.png", "b"), ("b/one, 3.png", "b")
    ]  # fmt: skip
    assert run(["encode", str(folder), str(tmp_path / "pictures")]) == 0
    with open(folder / "codes_rows.csv", newline="") as file:
        assert [row["file"] for row in csv.DictReader(file)] == [row["file"] for row in rows]
    codes = np.array([[row["z1"], row["z2"]] for row in rows], np.float32)
    np.testing.assert_array_equal(np.load(folder / "codes.npy"), codes)
    assert run(["encode", str(table), str(table.parent / "wine.csv"), "--output", str(output)]) == 0
    assert output.read_text().splitlines()[0] == "target,z1,z2,z3"
    assert output.read_text().splitlines()[1].startswith("class 0,")


@pytest.mark.thorough
def test_columns_are_matched_by_name(table, tmp_path, capsys):
    frame = load_wine(as_frame=True).data
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame[frame.columns[::-1]].to_csv(tmp_path / "reversed.csv", index=False)
    for name in ("x", "reversed"):
        assert (
            run(["encode", str(table), str(tmp_path / f"{name}.csv"), "--output", str(tmp_path / f"{name}-z.csv")]) == 0
        )
    assert (tmp_path / "reversed-z.csv").read_text() == (tmp_path / "x-z.csv").read_text()
    frame.rename(columns={"ash": "dust"}).to_csv(tmp_path / "x.csv", index=False)
    assert run(["encode", str(table), str(tmp_path / "x.csv")]) == 2
    said = capsys.readouterr().err
    assert (
        "x.csv: the file lacks 'ash'; it has in addition 'dust'. The feature names that the model learned from" in said
    )
    # The missing column is named, not the text in a column that is there instead.
    frame.drop(columns="ash").assign(target="red").to_csv(tmp_path / "x.csv", index=False)
    assert run(["encode", str(table), str(tmp_path / "x.csv")]) == 2
    assert "the file lacks 'ash'. The feature names" in capsys.readouterr().err


def test_a_model_keeps_the_column_names_of_its_file(table):
    frame = load_wine(as_frame=True).data
    vae = load(table / "model")
    assert list(vae.feature_names_in_) == list(frame.columns)
    scores = vae.score_samples(frame)
    np.testing.assert_array_equal(vae.score_samples(frame[frame.columns[::-1]]), scores)
    np.testing.assert_array_equal(vae.score_samples(frame.to_numpy()), scores)  # an array is in the file's order
    with pytest.raises(ValueError, match=r"X: the value at row 0, column 'ash' is inf"):
        vae.score_samples(frame.assign(ash=np.inf))


def test_numbers_are_written_with_all_digits(tmp_path):
    from aevb.cli.apply import _write

    rows = np.array([[1001297.2165, 0.1, 1 / 3], [1e-300, -0.0, 1e30]])
    for dtype in (np.float64, np.float32):
        _write(tmp_path / "x.csv", rows.astype(dtype), ["a", "b", "c"])
        found = np.loadtxt(tmp_path / "x.csv", delimiter=",", skiprows=1, dtype=dtype)
        np.testing.assert_array_equal(found, rows.astype(dtype))
    assert (tmp_path / "x.csv").read_text().splitlines()[1].endswith(",0.1,0.33333334")  # no more than needed


@pytest.mark.slow
def test_a_table_is_shown_by_its_columns(table, tmp_path, capsys):
    names = {path.stem for path in table.glob("*.png")}
    assert names == {"learning_curve", "columns", "reconstructions_by_column", "latent", "units"}
    page = (table / "report.html").read_text(encoding="utf-8")
    assert "log-densities of x in the units of the data" in page
    metrics = json.loads((table / "metrics.json").read_text())
    assert metrics["likelihood"] == "gaussian"
    assert "independent_gaussians" in metrics["comparison"]
    assert run(["sample", str(table), "--output", str(tmp_path / "x.csv")]) == 0
    assert (tmp_path / "x.csv").read_text().startswith("alcohol,malic_acid,")
    assert run(["sample", str(table), "--output", str(tmp_path / "x.png")]) == 2
    assert "a .png is for images" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit"], "Which data?"),
        (["fit", "dgits"], "dgits is neither the name of a data set"),
        (["fit", "digits", "--likelihood", "bernouli"], "Did you mean 'bernoulli'"),
        (["fit", "digits", "--latent-dim", "0"], "--latent-dim 0 is not allowed"),
        (["fit", "digits", "--test-fraction", "2"], "--test-fraction 2.0 is not allowed"),
        (["fit", "--config", "no.toml"], "no.toml cannot be read: No such file"),
        (["fit", "--config", "broken.toml"], "broken.toml is not TOML"),
        (["fit", "--config", "unknown.toml"], "unknown.toml: [model] latent_dims: VAE has no such argument"),
        (["fit", "words.csv"], "words.csv has too few rows (2) to train on some and hold out others"),
        (["fit", "hole.npy"], "hole.npy: the value at row 1, column 1 is nan"),
        (["sample", "nowhere"], "nowhere is not a run folder"),
        (["data", "get", "mnits"], "Did you mean 'mnist'"),
    ],
)
def test_bad_input_gets_one_line_and_nothing_is_written(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.toml").write_text("[model")
    (tmp_path / "unknown.toml").write_text('[data]\nsource = "digits"\n[model]\nlatent_dims = 2\n')
    (tmp_path / "words.csv").write_text("a,b\n1,2\n3,x\n")
    np.save(tmp_path / "hole.npy", np.array([[1, 2], [3, np.nan]] * 20))
    before = sorted(tmp_path.rglob("*"))
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("aevb: ")
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_bug_in_the_package_is_not_hidden(monkeypatch, tmp_path):
    monkeypatch.setattr("aevb.cli.apply.open_run", lambda folder: np.zeros(3).reshape(2, 2))
    with pytest.raises(ValueError, match="reshape"):
        run(["encode", str(tmp_path), "digits"])


def test_data_list(capsys):
    assert run(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:6]] == list(load_names())
    assert run(["data", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["datasets"][1]["state"] == "here"


def load_names():
    from aevb.data import DATASETS

    return DATASETS


def test_data_get_of_an_available_data_set(capsys):
    assert run(["data", "get", "digits"]) == 0
    assert "1,797 rows of 64 columns, checked" in capsys.readouterr().out


def test_doctor(capsys):
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    for said in ("python", "jax", "devices", "cores", "data folders", "No problems found"):
        assert said in out


@pytest.mark.thorough
def test_doctor_tells_which_extra_a_missing_feature_needs(capsys, monkeypatch):
    """Each extra that it names is one of pyproject.toml, and installs that package."""
    from aevb.cli import doctor

    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for package, (extra, _) in doctor.OPTIONAL.items():
        assert any(line.startswith(package) for line in extras["optional-dependencies"][extra])

    def version(name):
        if name == "pyarrow":
            raise doctor.PackageNotFoundError
        return "1.0"

    monkeypatch.setattr(doctor, "version", version)
    assert run(["doctor", "--json"]) == 0
    (missing,) = json.loads(capsys.readouterr().out)["missing"]
    assert (missing["for"], missing["install"]) == ("Parquet files", "pip install 'aevb[parquet]'")
    assert run(["doctor"]) == 0
    assert "Parquet files  pip install 'aevb[parquet]'" in capsys.readouterr().out


def test_every_command_has_help(capsys):
    for name in app:
        if not name.startswith("-"):
            assert run([name, "--help"]) == 0
            assert "Usage: aevb" in capsys.readouterr().out


def test_help_of_fit_has_the_arguments_and_is_light():
    code = "import sys; from aevb.cli import run; run(['fit', '--help']); print('jax' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "--latent-dim" in result.stdout
    assert result.stdout.splitlines()[-1] == "False"


def test_anomalies_are_ranked_with_their_labels(table, tmp_path, capsys):
    frame = load_wine(as_frame=True).frame[:20]
    frame["target"] = "class " + frame["target"].astype(str)
    frame.loc[7, "ash"] = 1e3  # a thousand standard deviations away
    frame.loc[11, "alcohol"] = np.nan  # missing values are allowed
    frame.to_csv(tmp_path / "wine.csv", index=False)
    output = tmp_path / "ranked.csv"
    arguments = ["anomalies", str(table), str(tmp_path / "wine.csv"), "--top", "3", "--output", str(output)]
    assert run([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["anomalies"][0]["row"] == 7
    written = list(csv.DictReader(output.read_text().splitlines()))
    assert len(written) == found["rows"] == 20
    assert list(written[0]) == ["rank", "row", "score", "target"]
    assert written[0]["target"] == "class 0"
    scores = [float(row["score"]) for row in written]
    assert scores == sorted(scores, reverse=True)
    assert sorted(int(row["row"]) for row in written) == list(range(20))
    assert run(arguments) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["rank", "row", "score", "target"]
    assert shown[1].split()[:2] == ["1", "7"]
    assert len(shown) == 1 + 3 + 3
    assert "rows with different missing values are not comparable" in shown[-2]
    assert run([*arguments[:-1], str(tmp_path / "ranked.npy")]) == 2  # before any work
    assert "its name must end in .csv" in capsys.readouterr().err


def test_inpainting_complete_rows_gives_a_note(table, tmp_path, capsys):
    load_wine(as_frame=True).data[:3].to_csv(tmp_path / "whole.csv", index=False)
    assert run(["inpaint", str(table), str(tmp_path / "whole.csv"), "--output", str(tmp_path / "x.csv")]) == 0
    assert "Note: X has no missing values (NaN), so nothing was filled in" in capsys.readouterr().err


@pytest.mark.thorough
def test_the_number_of_latent_variables_is_chosen_and_the_config_repeats_that(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 1)) @ rng.normal(size=(1, 3)) + 0.5 * rng.normal(size=(60, 3))
    np.savetxt(tmp_path / "x.csv", rows, delimiter=",", header="a,b,c", comments="")
    options = ["--latent-dim", "auto", "--hidden", "4", "--max-epochs", "2"]
    assert run(["fit", str(tmp_path / "x.csv"), *options, "--out", str(tmp_path)]) == 0
    folder = tmp_path / "x"
    vae = load(folder / "model")
    assert [row["latent_dim"] for row in vae.latent_dim_search_] == [1, 2]
    assert f"latent_dim: {vae.latent_dim_} (held-out bound" in capsys.readouterr().err
    assert tomllib.loads((folder / "config.toml").read_text())["model"]["latent_dim"] == "auto"
    assert "chosen by the bound of held-out rows" in (folder / "report.html").read_text()
    assert run(["encode", str(folder), str(tmp_path / "x.csv"), "--output", str(tmp_path / "z.csv"), "--quiet"]) == 0
    assert (tmp_path / "z.csv").read_text().splitlines()[0] == ("z1" if vae.latent_dim_ == 1 else "z1,z2")
    config = str(folder / "config.toml")
    assert run(["fit", "--config", config, "--out", str(tmp_path), "--name", "again", "--quiet"]) == 0
    np.testing.assert_array_equal(load(tmp_path / "again" / "model").transform(rows), vae.transform(rows))


def test_imputing_keeps_labels_and_counts_what_it_filled_in(table, tmp_path, capsys):
    frame = load_wine(as_frame=True).frame[:4].drop(columns="ash")
    frame.loc[2, "alcohol"] = np.nan
    frame.assign(target="red").to_csv(tmp_path / "holes.csv")  # with pandas' index
    output = tmp_path / "filled.csv"
    arguments = ["impute", str(table), str(tmp_path / "holes.csv"), "--output", str(output), "--method", "importance"]
    assert run(arguments) == 0
    said = capsys.readouterr()
    assert "Filled in 5 missing values, in 4 of 4 rows." in said.out
    assert "holes.csv lacks 'ash': filled in as missing values in all rows." in said.err
    assert "it is left out" in said.err
    filled = list(csv.DictReader(output.read_text().splitlines()))
    assert [row["target"] for row in filled] == ["red"] * 4
    assert float(filled[0]["alcohol"]) == frame.loc[0, "alcohol"]
    assert all(np.isfinite(float(row["ash"])) for row in filled)


@pytest.mark.thorough
def test_columns_left_out_by_a_run_are_left_out_of_other_files(tmp_path, capsys):
    frame = load_wine(as_frame=True).data.assign(who="somebody", where="there")
    frame.to_csv(tmp_path / "wine.csv", index=False)
    arguments = ["fit", str(tmp_path / "wine.csv"), *TINY, "--out", str(tmp_path), "--name", "run", "--quiet"]
    assert run([*arguments, "--drop-columns", "who, where,ashes"]) == 2
    assert "there is no column 'ashes'" in capsys.readouterr().err
    assert run([*arguments, "--drop-columns", "who, where,ash"]) == 0
    for file in ("wine.csv", "less.csv"):
        frame[:5].drop(columns="who" if file == "less.csv" else []).to_csv(tmp_path / file, index=False)
        assert run(["encode", str(tmp_path / "run"), str(tmp_path / file)]) == 0
    assert np.load(tmp_path / "run" / "codes.npy").shape == (5, 2)
