"""`aevb fit series.csv --time t --sequence id` and `aevb forecast`."""

import csv
import json

import numpy as np
import pytest

from aevb.cli import run

pytestmark = pytest.mark.thorough
OPTIONS = ["--latent-dim", "2", "--hidden", "4", "--max-epochs", "2", "--optimizer", "sgd", "--learning-rate", "1e-4"]


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


def test_a_file_of_series_is_learned_and_forecast(series, tmp_path, capsys):
    columns = ["--time", "day", "--sequence", "shop", "--column", "visits=count", "--column", "level=gaussian"]
    assert run(["fit", str(series), *columns, "--out", str(tmp_path), *OPTIONS, "--json"]) == 0
    folder = tmp_path / "series"
    assert json.loads(capsys.readouterr().out)["sequences"] == 12
    assert "held_out_bound_per_step" in json.loads((folder / "metrics.json").read_text(encoding="utf-8"))

    assert run(["forecast", str(folder), "--steps", "3", "--draws", "20", "--quiet"]) == 0

    with open(folder / "forecast.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12 * 3
    assert list(rows[0]) == [
        "sequence",
        "step",
        "level",
        "level_low",
        "level_high",
        "visits",
        "visits_low",
        "visits_high",
    ]
    assert all(float(row["level_low"]) < float(row["level_high"]) for row in rows)
    assert (folder / "forecast.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--time", "date"], "--time: .* there is no column 'date'"),
        (["--time", "day", "--target", "visits"], "--time cannot be combined with --target"),
        (["--time", "day", "--posterior", "flow"], "--posterior: SequenceVAE has no such argument"),
        (["--sequence", "shop", "--time", "visits"], "step . of sequence"),
        (["--sequence", "shop", "--binarization", "static"], "--binarization cannot be combined with --time"),
    ],
)
def test_what_does_not_fit_is_refused(series, tmp_path, capsys, options, words):
    import re

    assert run(["fit", str(series), *options, "--out", str(tmp_path)]) == 2
    assert re.search(words, capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_other_runs_are_not_forecast(tmp_path, capsys):
    (tmp_path / "config.toml").write_text("[run]\n", encoding="utf-8")

    assert run(["forecast", str(tmp_path), "--steps", "3"]) == 2
    assert "not a run of sequences" in capsys.readouterr().err
