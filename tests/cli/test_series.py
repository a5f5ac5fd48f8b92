"""`aevb fit series.csv --time t --sequence id` and `aevb forecast`."""

import csv
import json
import tomllib

import numpy as np
import pandas as pd
import pytest

from aevb import load
from aevb.cli import run
from aevb.data.data_settings import DataSettings
from aevb.data.run_data import prepare
from aevb.data.series import time_column

pytestmark = pytest.mark.thorough
OPTIONS = ["--latent-dim", "2", "--hidden", "linear", "--max-epochs", "2", "--optimizer", "sgd"]
OPTIONS += ["--learning-rate", "1e-4"]
OPTIONS += ["--transition", "linear", "--recognition", "forward", "--recurrent-size", "4"]
OPTIONS += ["--autoregressive", "states"]


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    path, rng = tmp_path_factory.mktemp("series") / "series.csv", np.random.default_rng(0)
    rows = [
        [name, f"2024-01-{day:02d}", f"{level:.3f}", count]
        for name in "abcdefghijkl"
        for day, level, count in zip(
            np.cumsum(rng.integers(1, 3, 7)), rng.normal(size=7).cumsum(), rng.poisson(3, 7), strict=True
        )
    ]
    rows[5][2] = ""  # a missing entry
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["shop", "day", "level", "visits"], *rows])
    return path


COLUMNS = ["--time", "day", "--sequence", "shop", "--column", "visits=count", "--column", "level=gaussian"]


@pytest.fixture(scope="module")
def folder(series, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    assert run(["fit", str(series), *COLUMNS, "--out", str(out), *OPTIONS, "--quiet"]) == 0
    return out / "series"


def test_a_file_of_series_is_learned_and_reported(series, folder, capsys):
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "aevb fit --config" in page
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["lower_bound"]["sequences"] == 1
    assert metrics["lower_bound"]["unit"] == "nats per step"

    (folder / "report.html").unlink()
    assert run(["report", str(folder)]) == 0
    assert capsys.readouterr().out.endswith(f"The report is {folder / 'report.html'}\n")
    assert (folder / "report.html").exists()


def test_forecasts_are_a_table_with_times(folder, capsys):
    assert run(["forecast", str(folder), "--steps", "3", "--draws", "20"]) == 0
    said = capsys.readouterr().out
    assert "a\n  step         day" in said
    assert "10 more sequences" in said
    assert said.rstrip().endswith(str(folder / "forecast.png"))

    with open(folder / "forecast.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12 * 3
    assert list(rows[0]) == [
        "shop",
        "step",
        "day",
        "level",
        "level_low",
        "level_high",
        "visits",
        "visits_low",
        "visits_high",
    ]
    assert [row["step"] for row in rows[:4]] == ["1", "2", "3", "1"]
    days = np.array([row["day"] for row in rows[:3]], "M8[D]")
    assert (np.diff(days) >= np.timedelta64(1, "D")).all()
    assert days[0] > np.datetime64("2024-01-06")
    assert all(float(row["level_low"]) < float(row["level_high"]) for row in rows)
    assert (folder / "forecast.png").stat().st_size > 1000


def test_an_interrupted_run_of_sequences_resumes_with_the_same_result(series, folder, tmp_path, monkeypatch, capsys):
    import signal

    from aevb.training.progress import Progress

    def advance(self, samples, name, value):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("aevb.report.report.write_results", lambda *_, **__: {})
    monkeypatch.setattr("aevb.cli.learn.say_numbers", lambda *_: None)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "advance", advance)
        assert run(["fit", str(series), *COLUMNS, "--out", str(tmp_path), *OPTIONS]) == 130
    signal.signal(signal.SIGINT, before)
    cut = tmp_path / "series"
    assert f"Continue with: aevb fit --resume {cut}" in capsys.readouterr().out
    assert len(load(cut / "model").history_) == 1

    assert run(["fit", "--resume", str(cut), "--quiet"]) == 0
    one, other = load(cut / "model"), load(folder / "model")
    assert len(one.history_) == len(other.history_) == 2
    np.testing.assert_array_equal(one.sample(2, 5, random_state=0), other.sample(2, 5, random_state=0))


def test_the_options_of_the_model_are_those_of_sequences(folder):
    model = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))["model"]
    assert model["recognition"] == "forward"
    assert model["transition"] == "linear"
    assert model["recurrent_size"] == 4
    assert model["hidden"] == []


@pytest.mark.parametrize("command", [["sample"], ["encode", "x.csv"], ["evaluate"]])
def test_other_commands_say_what_sequences_have(folder, capsys, command):
    name, *rest = command
    assert run([name, str(folder), *rest]) == 2
    assert "commands forecast, report, plot and explore" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("dates", "unit", "expected"),
    [
        (["2024-01-31", "2024-02-29"], 30 * 86400, ["2024-03-30", "2024-04-29"]),
        (["2023-10-01", "2023-11-01", "2023-12-01"], 30.5 * 86400, ["2024-01-01", "2024-02-01"]),
        (["2020-01-01", "2021-01-01"], 366 * 86400, ["2022-01-01", "2023-01-01"]),
        (["2024-01-01", "2024-01-03"], 2 * 86400, ["2024-01-05", "2024-01-07"]),
    ],
)
def test_months_are_continued_in_months(dates, unit, expected):
    from aevb.data.sequences import Sequences
    from aevb.data.series import SeriesFile, times_after

    dates = np.array(dates, "M8[s]")
    found = Sequences(np.zeros((len(dates), 1)), np.array([len(dates)]))
    numbers = np.arange(1)
    later = times_after(SeriesFile("", found, dates, numbers, numbers), unit, 2)
    assert later.astype("M8[D]").astype(str).tolist() == [expected]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--time", "date"], "--time: .* there is no column 'date'"),
        (["--time", "day", "--target", "visits"], "--time cannot be combined with --target"),
        (["--time", "day", "--posterior", "flow"], "--posterior: SequenceVAE has no such argument"),
        (["--sequence", "shop", "--time", "visits"], "step . of sequence"),
        (["--sequence", "shop", "--binarization", "static"], "--binarization cannot be combined with --time"),
        (["--time", "day", "--autoregressive=all"], "--autoregressive: expected one of true, false, states"),
    ],
)
def test_what_does_not_fit_is_refused(series, tmp_path, capsys, options, words):
    import re

    assert run(["fit", str(series), *options, "--out", str(tmp_path)]) == 2
    assert re.search(words, capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["--autoregressive"], ["--autoregressive", "states"], ["--no-autoregressive"]])
def test_an_option_that_may_stand_alone_takes_only_its_own_words(series, tmp_path, capsys, words):
    assert run(["fit", "--time", "date", *words, str(series), "--out", str(tmp_path)]) == 2
    assert "there is no column 'date'" in capsys.readouterr().err


def test_other_runs_are_not_forecast(tmp_path, capsys):
    (tmp_path / "config.toml").write_text('[data]\nsource = "digits"\n', encoding="utf-8")

    assert run(["forecast", str(tmp_path), "--steps", "3"]) == 2
    assert "not a run of sequences" in capsys.readouterr().err
    assert run(["fit", "digits", "--transition", "linear"]) == 2
    assert "--transition: VAE has no such argument. It is for sequences" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"when": ["2024-01-01", "2024-01-02", "2024-01-04"], "x": [1.5, 2.5, 0.5]}, "when"),
        ({"Year": [1900, 1901, 1902], "x": [1.5, 2.5, 0.5]}, "Year"),
        ({"x": [1.5, 2.5, 3.5], "y": [1.5, 2.5, 0.5]}, None),  # numbers that happen to rise
        ({"when": ["2024-01-01", "2024-01-04", "2024-01-02"], "x": [1.5, 2.5, 0.5]}, None),
        ({"time": ["early", "noon", "late"], "x": [1.5, 2.5, 0.5]}, None),
        ({"time": [1.0, np.nan, 3.0], "x": [1.5, 2.5, 0.5]}, None),
    ],
)
def test_times_that_rise_are_recognized(columns, expected, tmp_path):
    pd.DataFrame(columns).to_csv(tmp_path / "rows.csv", index=False)
    data = prepare(DataSettings(str(tmp_path / "rows.csv"), test_fraction=0.4))
    assert time_column(data.dataset) == expected


def test_rows_in_the_order_of_time_get_a_hint(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    pd.DataFrame({"t": np.arange(30), "x": np.sin(np.arange(30))}).to_csv(path, index=False)
    assert run(["fit", str(path), "--max-epochs", "1", "--hidden", "4", "--out", str(tmp_path)]) == 0
    assert f"aevb fit {path} --time t" in capsys.readouterr().out
