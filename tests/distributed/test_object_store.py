"""Shards on a web server and in a real S3 server that fail, stall, truncate or lose data, read by two processes."""

import http.client
import http.server
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress

import numpy as np
import pytest

pytest.importorskip("aiohttp")
pytestmark = pytest.mark.slow
ROWS = np.random.default_rng(0).normal(size=(900, 5))
NAMES = [f"part-{number}.npy" for number in range(3)]


class Faulty(http.server.BaseHTTPRequestHandler):
    """Passes requests on to a server, with the faults that are left: by the end of the path, and once each."""

    origin = ("127.0.0.1", 0)
    faults: dict[str, list[str]] = {}

    def do_GET(self):
        fault = next((left.pop() for name, left in self.faults.items() if self._name == name and left), None)
        if fault == "stall":
            time.sleep(8)  # the clients of these tests wait for two seconds
        if fault in ("404", "500"):
            return self.send_error(int(fault))
        with closing(http.client.HTTPConnection(*self.origin)) as connection:
            connection.request(self.command, self.path, headers=dict(self.headers))
            answer = connection.getresponse()
            body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "server", "date"):
                self.send_header(name, value)
        self.end_headers()
        body = b"?" * len(body) if fault == "corrupt" else body
        with suppress(ConnectionError):  # it did not wait
            self.wfile.write(body[: len(body) // 2] if fault == "truncate" else body)
        self.close_connection = True
        return None

    do_HEAD = do_GET  # noqa: N815

    @property
    def _name(self):
        return self.path.partition("?")[0].rpartition("/")[2] if self.command == "GET" else ""

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def shards(tmp_path):
    """A folder with three shards."""
    (tmp_path / "shards").mkdir()
    for name, rows in zip(NAMES, np.split(ROWS, [100, 500]), strict=True):
        np.save(tmp_path / "shards" / name, rows)
    return tmp_path / "shards"


@pytest.fixture(params=["http", "s3"])
def store(request, shards):
    """The URL of the shards, and the environment variables that it needs."""
    command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(shards)]
    if request.param == "s3":
        python = request.getfixturevalue("s3_python")
        command = [python, "-m", "moto.server", "-H", "127.0.0.1", "-p"]
    port = free_port()
    server = subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    Faulty.origin, Faulty.faults = ("127.0.0.1", port), {}
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Faulty)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    _wait(port)
    address = f"http://127.0.0.1:{proxy.server_port}"
    if request.param == "http":
        yield f"{address}/", {}
    else:
        known = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1"}
        known |= {"AWS_ENDPOINT_URL": address, "AWS_MAX_ATTEMPTS": "1"}
        known |= {"PYTHON": python}  # of the workers
        _fill(shards, f"http://127.0.0.1:{port}", known)
        yield "s3://bucket/shards/", known
    proxy.shutdown()
    proxy.server_close()
    server.kill()
    server.wait()


def _wait(port):
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("the server did not start")


def _fill(folder, address, known):
    """Copy the shards to S3."""
    program = (
        "import s3fs, sys; s = s3fs.S3FileSystem(); s.mkdir('bucket');"
        "[s.put(path, 'bucket/shards/' + path.rpartition('/')[2]) for path in sys.argv[1:]]"
    )
    paths = [str(folder / name) for name in NAMES]
    subprocess.run(
        [known["PYTHON"], "-c", program, *paths], env=os.environ | known | {"AWS_ENDPOINT_URL": address}, check=True
    )


def test_faults_that_pass_lose_nothing(store, shards, learned, learned_together, tmp_path, check_equal):
    url, known = store
    one = learned("remote", URL=shards)
    Faulty.faults = {"part-0.npy": ["500"], "part-1.npy": ["truncate", "stall"], "part-2.npy": ["truncate"]}
    given = {"URL": url, "AEVB_CACHE": tmp_path / "cache", **known}
    for process in learned_together("remote", 2, **given):
        check_equal(process, one, 1e-5)
    assert not any(Faulty.faults.values())


@pytest.mark.parametrize("fault", ["500", "404", "corrupt"])
def test_a_shard_that_cannot_be_had_ends_all_and_is_named(store, processes, tmp_path, fault):
    """It keeps failing, has disappeared after it was listed, or is no data file."""
    url, known = store
    Faulty.faults = {"part-2.npy": [fault] * 1000}
    group = processes(2, "remote", tmp_path / "{process}.npz", URL=url, AEVB_CACHE=tmp_path / "cache", **known)
    assert 0 not in group.codes()
    assert all("part-2.npy" in said for said in group.said), "\n".join(group.said)
    assert not list(tmp_path.glob("*.npz"))
