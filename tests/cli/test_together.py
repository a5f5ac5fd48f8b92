"""Commands in several processes."""

import functools
import http.server
import json
import os
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest


@pytest.fixture
def coordinator():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def together(coordinator, tmp_path):
    """A function that runs a command in two processes; it returns their exit codes, outputs and errors."""

    def run(*command, start=("-m", "aevb")):
        command = [sys.executable, *start, *command, "--coordinator", coordinator, "--num-processes", "2"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        both = [subprocess.Popen([*command, "--process-id", str(n)], env=environment, **pipes) for n in range(2)]
        said = [process.communicate(timeout=500) for process in both]
        return [process.returncode for process in both], *zip(*said, strict=True)

    return run


@pytest.mark.thorough
def test_a_process_that_never_starts_is_named(coordinator):
    launch = ["--coordinator", coordinator, "--num-processes", "2", "--process-id", "1", "--peer-timeout", "0.5"]
    command = [sys.executable, "-m", "aevb", "doctor", "--distributed", *launch]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 2
    assert f"aevb: Process 0 did not answer at {coordinator} within 0.5 s" in run.stderr


@pytest.mark.slow
def test_only_the_first_process_writes(together, tmp_path):
    codes, outputs, errors = together("fit", "digits", "--max-epochs", "2", "--quiet")
    assert codes == [0, 0], errors
    assert outputs[0].startswith("Results are in runs/digits.")
    assert outputs[1] == ""
    assert [folder.name for folder in (tmp_path / "runs").iterdir()] == ["digits"]
    codes, outputs, errors = together("fit", "--resume", "runs/digits", "--max-epochs", "3", "--quiet")
    assert codes == [0, 0], errors
    assert len((tmp_path / "runs/digits/history.csv").read_text().splitlines()) == 4


@pytest.mark.slow
def test_the_doctor_examines_all_processes(together):
    codes, outputs, errors = together("doctor", "digits", "--distributed", "--json")
    assert codes == [0, 0], errors
    facts = json.loads(outputs[0].splitlines()[-1])["facts"]
    assert facts["processes"] == "2"
    assert "1,797 digits" in facts["process 1"]
    assert facts["average of 1,000,000 numbers"].endswith(" ms")


@pytest.mark.slow
def test_bad_input_of_one_process_ends_both(together, tmp_path):
    codes, _, errors = together("fit", "digits", "--latent-dim", "0")
    assert codes == [2, 2]
    assert all("latent_dim" in error for error in errors)


ALL_IS_LARGE = (
    "from aevb.data import training_data; training_data.IN_MEMORY_BYTES = 1000; import aevb.cli; aevb.cli.main()"
)


@pytest.mark.slow
def test_each_process_encodes_and_evaluates_its_part(together, tmp_path):
    rows = np.random.default_rng(0).random((301, 64)).astype(np.float32)
    for number, part in enumerate(np.split(rows, [20, 200])):
        (tmp_path / "shards").mkdir(exist_ok=True)
        np.save(tmp_path / "shards" / f"{number}.npy", part)
    np.save(tmp_path / "all.npy", rows)
    alone = [sys.executable, "-m", "aevb"]
    subprocess.run([*alone, "fit", "digits", "--max-epochs", "1", "--quiet"], check=True, cwd=tmp_path)
    subprocess.run([*alone, "encode", "runs/digits", "all.npy", "--output", "whole.npy"], check=True, cwd=tmp_path)
    options = ["--method", "importance", "--num-samples", "50", "--rows", "70", "--json"]
    one = subprocess.run(
        [*alone, "evaluate", "runs/digits", "all.npy", *options],
        check=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    codes, outputs, errors = together("encode", "runs/digits", "shards", "--json", start=("-c", ALL_IS_LARGE))
    assert codes == [0, 0], errors
    files = [tmp_path / name for name in json.loads(outputs[0])["output"]]
    assert [file.name for file in files] == ["codes-00000-of-00002.npy", "codes-00001-of-00002.npy"]
    whole = np.load(tmp_path / "whole.npy")
    np.testing.assert_allclose(np.concatenate(list(map(np.load, files))), whole, rtol=1e-4, atol=1e-5)
    codes, outputs, errors = together("evaluate", "runs/digits", "shards", *options, start=("-c", ALL_IS_LARGE))
    assert codes == [0, 0], errors
    assert outputs[1] == ""
    alone, both = (json.loads(text)["log_likelihood"] for text in (one.stdout, outputs[0]))
    assert both["value"] == pytest.approx(alone["value"], rel=1e-5)
    assert both["rows"] == alone["rows"] == 70


@pytest.fixture
def site(tmp_path):
    """The address of a web server for the files of a folder, and the folder."""
    (folder := tmp_path / "site").mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()


@pytest.mark.slow
def test_a_run_on_a_url_fills_in_values_though_only_the_first_process_computes(together, site, tmp_path, monkeypatch):
    """The first one opens the data of the run again, for the names of columns, when the other one has ended."""
    pytest.importorskip("aiohttp")
    monkeypatch.setenv("AEVB_CACHE", str(tmp_path / "cache"))
    address, folder = site
    rows = np.random.default_rng(0).random((60, 4))
    np.save(folder / "rows.npy", rows)
    rows[::7, 1] = np.nan
    np.save(folder / "holes.npy", rows)
    options = ["--max-epochs", "1", "--quiet", "--name", "run"]
    subprocess.run([sys.executable, "-m", "aevb", "fit", f"{address}/rows.npy", *options], check=True, cwd=tmp_path)
    codes, _, errors = together("inpaint", "runs/run", f"{address}/holes.npy", "--method", "importance")
    assert codes == [0, 0], errors
    filled = np.load(tmp_path / "runs/run/filled_rows.npy")
    assert np.isfinite(filled).all()
    np.testing.assert_allclose(filled[1], rows[1], rtol=1e-6)
