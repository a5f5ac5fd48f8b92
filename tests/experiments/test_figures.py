"""A tiny version of every figure, and of the table of claims."""

import json
import tomllib
from dataclasses import replace
from importlib.resources import files

import pytest
from PIL import Image

from aevb.cli import run
from aevb.experiments.claims import CLAIMS, reproduce_claims
from aevb.experiments.cost import core_seconds
from aevb.experiments.figures import FIGURES, reproduce_figure
from aevb.experiments.parallel_curves import ExperimentError, run_curves
from aevb.experiments.reproduction import estimate
from aevb.experiments.settings import PROFILES, curves_of, read

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduce")


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn_and_its_numbers_are_written(name, folder):
    seen = []
    png, numbers = reproduce_figure(name, "tiny", folder, watch=lambda curve, _: seen.append(curve), processes=1)
    with Image.open(png) as image:
        assert image.size[0] > 500
    assert png.with_suffix(".svg").read_text().startswith("<?xml")
    found = json.loads(numbers.read_text())
    expected = curves_of(read(name), "tiny")
    assert {curve.name for curve in seen} == {curve.name for curve in expected}
    assert len(found["curves"]) == len(expected)
    for curve in found["curves"]:
        assert [point["samples"] for point in curve["points"]] == curve["settings"]["samples"]
        assert all({"mean", "std_error"} <= set(point[part]) for point in curve["points"] for part in ("train", "test"))
    assert {"seed", "versions", "machine", "commit", "expects"} <= set(found)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("profile", PROFILES)
def test_settings_match_the_paper(name, profile):
    for curve in curves_of(read(name), profile):
        assert list(curve.samples) == sorted(set(curve.samples))
        if profile == "tiny":
            continue
        assert (curve.batch_size, curve.num_samples, curve.step_sizes) == (100, 1, (0.01, 0.02, 0.1))
        hidden = {"mnist": 100 if name == "figure-3" else 500, "frey-faces": 200}
        assert curve.hidden == hidden[curve.data]


def test_the_standard_profile_has_the_documented_length():
    for curve in curves_of(read("figure-2"), "standard"):
        assert curve.samples[-1] >= (2_000_000 if curve.latent_dim == 200 else 5_000_000)
    for curve in curves_of(read("figure-3"), "standard"):
        assert curve.samples[-1] >= (10_000_000 if curve.num_train == 1000 else 5_000_000)
        assert curve.num_evaluated == 1000


def test_every_settings_file_says_what_it_is_expected_to_show():
    found = [file for file in files("aevb.experiments").joinpath("settings").iterdir() if file.name.endswith(".toml")]
    assert {file.name.removesuffix(".toml") for file in found} == {*FIGURES, "claims"}  # the others have no curves
    assert all(len(tomllib.loads(file.read_text())["expects"]) > 40 for file in found)


def test_curves_are_shared_between_figures():
    names = [{curve.name for curve in curves_of(read(name), "standard")} for name in ("figure-2", "figure-5")]
    assert len(names[0] & names[1]) == 3  # J = 5, 10 and 20; only J = 2 is figure 5's own


def test_the_estimate_counts_each_curve_once_and_skips_finished_ones(tmp_path):
    plan = estimate(["figure-2", "figure-5"], "standard", tmp_path, processes=2)
    assert "19 curves with 89.0 million training samples" in plan.summary
    (short, *_) = curves_of(read("figure-2"), "standard")
    assert core_seconds(short, short.samples[-1]) == 0
    assert core_seconds(short, short.samples[-1] // 2) < 0.7 * core_seconds(short)


def test_the_error_of_a_failed_curve_names_it(tmp_path, monkeypatch):
    (curve, *_) = curves_of(read("figure-2"), "tiny")
    with pytest.raises(ValueError, match="nothere"):
        run_curves([replace(curve, data="nothere")], tmp_path, lambda *_: None, processes=1)


@pytest.mark.slow
def test_curves_run_in_parallel_are_the_same_curves(tmp_path):
    curves = curves_of(read("figure-2"), "tiny")
    alone, together = (run_curves(curves, tmp_path / str(n), lambda *_: None, processes=n) for n in (1, 2))
    for one, other in zip(alone, together, strict=True):
        for left, right in zip(one["points"], other["points"], strict=True):
            assert left["test"]["mean"] == pytest.approx(right["test"]["mean"], rel=1e-4)


@pytest.mark.slow
def test_a_failure_in_a_process_reaches_the_caller(tmp_path):
    curves = [replace(curve, data="nothere") for curve in curves_of(read("figure-2"), "tiny")]
    with pytest.raises(ExperimentError, match="nothere"):
        run_curves(curves, tmp_path, lambda *_: None, processes=2)


@pytest.mark.slow
def test_the_table_of_claims_has_a_verdict_on_each(tmp_path):
    markdown, numbers = reproduce_claims("tiny", tmp_path, processes=1)
    assert len(markdown.read_text().splitlines()) == 2 + len(CLAIMS)
    rows = json.loads(numbers.read_text())["claims"]
    assert [row["claim"] for row in rows] == list(range(1, 10))
    assert all(row["verdict"] in ("holds", "holds in part", "does not hold") for row in rows)


@pytest.mark.parametrize(
    "arguments", [["figure-1"], ["figure-2", "--profile", "huge"], ["figure-2", "--processes", "0"]]
)
def test_unknown_arguments_are_rejected(arguments, capsys):
    assert run(["reproduce", *arguments]) == 2
