"""Commands on data larger than memory, here small ones that are treated as large: the same result, in pieces."""

import io
import json

import numpy as np
import pytest

from aevb.cli import run
from aevb.data import training_data

pytestmark = pytest.mark.thorough
ROWS = np.random.default_rng(0).normal(size=(700, 4)).astype(np.float32) @ np.diag([1, 2, 3, 4]).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, and the data that it learned from."""
    folder = tmp_path_factory.mktemp("stream")
    np.save(folder / "x.npy", ROWS)
    quick = ["--hidden", "4", "--latent-dim", "2", "--max-epochs", "1", "--optimizer", "sgd", "--quiet"]
    assert run(["fit", str(folder / "x.npy"), "--out", str(folder / "runs"), *quick]) == 0
    return folder


@pytest.fixture
def shards(folder, tmp_path, monkeypatch):
    """The same rows in a folder of shards, which is large from now on."""
    for number, rows in enumerate(np.split(ROWS, [100, 500])):
        np.save(tmp_path / f"{number}.npy", rows)
    monkeypatch.setattr("aevb.matrices._BLOCK_BYTES", 8 * 4 * 64)
    return tmp_path


def applied(command, folder, data, output):
    assert run([command, str(folder / "runs" / "x"), str(data), "--output", str(output), "--quiet"]) == 0
    return np.load(output) if output.suffix == ".npy" else np.loadtxt(output, delimiter=",", skiprows=1)


@pytest.mark.parametrize("command", ["encode", "reconstruct"])
def test_rows_are_computed_in_pieces(command, folder, shards, tmp_path, monkeypatch):
    whole = applied(command, folder, folder / "x.npy", tmp_path / "out" / "whole.npy")
    monkeypatch.setattr(training_data, "IN_MEMORY_BYTES", 1000)
    monkeypatch.setattr("aevb.cli.apply.read_named_rows", None)  # which reads all of them
    for name in ("parts.npy", "parts.csv"):
        np.testing.assert_allclose(
            applied(command, folder, shards, tmp_path / "out" / name), whole, rtol=1e-5, atol=1e-6
        )


def test_missing_values_are_filled_in_in_pieces(folder, tmp_path, monkeypatch):
    rows = ROWS[:130].copy()
    rows[::7, 1] = np.nan
    np.save(tmp_path / "holes.npy", rows)
    monkeypatch.setattr("aevb.matrices._BLOCK_BYTES", 8 * 4 * 64)
    monkeypatch.setattr(training_data, "IN_MEMORY_BYTES", 1000)
    command = ["inpaint", str(folder / "runs" / "x"), str(tmp_path / "holes.npy"), "--method", "importance", "--quiet"]
    assert run([*command, "--output", str(tmp_path / "filled.npy")]) == 0
    filled = np.load(tmp_path / "filled.npy")
    assert np.isfinite(filled).all()
    np.testing.assert_allclose(filled[~np.isnan(rows)], rows[~np.isnan(rows)], rtol=1e-6)


def test_rows_at_a_url_are_encoded_and_evaluated(folder, tmp_path, monkeypatch, capsys):
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setenv("AEVB_CACHE", str(tmp_path / "cache"))
    whole = applied("encode", folder, folder / "x.npy", tmp_path / "whole.npy")
    data = io.BytesIO()
    np.save(data, ROWS)
    fsspec.filesystem("memory").pipe("/bucket/x.npy", data.getvalue())
    command = ["evaluate", str(folder / "runs" / "x"), "memory://bucket/x.npy", "--rows", "50", "--json"]
    found = []
    for limit in (10**9, 1000):
        monkeypatch.setattr(training_data, "IN_MEMORY_BYTES", limit)
        codes = applied("encode", folder, "memory://bucket/x.npy", tmp_path / "codes.npy")
        np.testing.assert_allclose(codes, whole, rtol=1e-5, atol=1e-6)
        capsys.readouterr()
        assert run([*command, "--method", "importance", "--num-samples", "20"]) == 0
        found.append(json.loads(capsys.readouterr().out)["log_likelihood"]["value"])
    assert found[0] == pytest.approx(found[1], abs=1e-5)


def test_a_picture_of_rows_that_are_not_in_memory_is_refused(folder, shards, monkeypatch, capsys):
    monkeypatch.setattr(training_data, "IN_MEMORY_BYTES", 1000)
    command = ["reconstruct", str(folder / "runs" / "x"), str(shards), "--output", str(shards / "x.png")]
    assert run(command) == 2
    assert "x.png" in capsys.readouterr().err
