"""Start several processes that work together, on this machine."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

WORKER = Path(__file__).with_name("worker.py")
S3_PYTHON = Path(__file__).parents[2] / ".venv-s3/bin/python"  # `make test-slow` makes it


def python_for(variables):
    """Return the interpreter of a worker: PYTHON of its variables, or that of the tests."""
    return str(variables.get("PYTHON", sys.executable))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Processes:
    """Processes of the worker; their output is in `said`, after they have ended."""

    def __init__(self, number, *arguments, **variables):
        self.coordinator = f"127.0.0.1:{free_port()}"
        environment = os.environ | {"PYTHONHASHSEED": "0"} | {name: str(value) for name, value in variables.items()}
        self._files = [tempfile.TemporaryFile("w+") for _ in range(number)]  # noqa: SIM115
        self.running = [
            subprocess.Popen(
                [python_for(variables), str(WORKER), *map(str, arguments), self.coordinator, str(number), str(process)],
                env=environment | variables_of(variables, process),
                stdout=file,
                stderr=subprocess.STDOUT,
            )
            for process, file in enumerate(self._files)
        ]

    def codes(self, seconds=300):
        """Return the exit codes; processes that do not end in time are killed."""
        try:
            return [process.wait(seconds) for process in self.running]
        finally:
            for process in self.running:
                process.kill()

    def close(self):
        """Kill what still runs."""
        for process, file in zip(self.running, self._files, strict=True):
            process.kill()
            process.wait()
            file.close()

    @property
    def said(self):
        """What they printed."""
        for file in self._files:
            file.seek(0)
        return [file.read() for file in self._files]


def variables_of(variables, process):
    """Return the environment of one process: `ONE_X=...` sets X for process 1 only."""
    return {name[4:]: str(value) for name, value in variables.items() if process == 1 and name.startswith("ONE_")}


@pytest.fixture
def processes():
    """A function that starts some processes; those that still run are killed at the end."""
    started = []

    def start(number, *arguments, **variables):
        started.append(Processes(number, *arguments, **variables))
        return started[-1]

    yield start
    for group in started:
        group.close()


@pytest.fixture(scope="session")
def s3_python():
    """An interpreter with moto, s3fs and aevb: s3fs needs older versions of some packages than constraints.txt has."""
    for python in (S3_PYTHON, sys.executable):
        program = "import aevb, moto.server, s3fs"
        if Path(python).exists() and subprocess.run([python, "-c", program], capture_output=True).returncode == 0:
            return str(python)
    pytest.skip("moto and s3fs are not installed: `make test-slow` installs them into .venv-s3")


@pytest.fixture
def learned(tmp_path):
    """A function that returns what one process learns, alone or with several devices."""

    def learn(models, **variables):
        path = tmp_path / "one.npz"
        environment = os.environ | {"PYTHONHASHSEED": "0"} | {name: str(value) for name, value in variables.items()}
        subprocess.run([python_for(variables), str(WORKER), models, str(path)], check=True, env=environment)
        return dict(np.load(path))

    return learn


@pytest.fixture
def learned_together(tmp_path, processes):
    """A function that returns what each of some processes learns."""

    def learn(models, number, **variables):
        group = processes(number, models, tmp_path / "{process}.npz", **variables)
        assert group.codes() == [0] * number, "\n".join(group.said)
        return [dict(np.load(tmp_path / f"{process}.npz")) for process in range(number)]

    return learn


@pytest.fixture
def check_equal():
    """A function that compares parameters and histories, relative to the largest number of each."""

    def check(found, expected, relative):
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            if values.dtype.kind == "U":
                assert found[name] == values
                continue
            assert np.abs(found[name] - values).max() <= relative * np.abs(values).max(), name

    return check
