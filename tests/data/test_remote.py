"""Data at URLs, from a file system in memory and from a local HTTP server."""

import http.server
import io
import threading
from functools import partial

import numpy as np
import pytest

from aevb.data import remote
from aevb.data.own import open_dataset
from aevb.data.remote import local_copy
from aevb.errors import DataFileError

fsspec = pytest.importorskip("fsspec")


@pytest.fixture(autouse=True)
def _quick(monkeypatch, tmp_path):
    monkeypatch.setenv("AEVB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(remote, "PAUSE", 0.0)


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    system.store.clear()

    def put(name, rows):
        data = io.BytesIO()
        np.save(data, rows)
        system.pipe(f"/bucket/{name}", data.getvalue())

    return put


ROWS = np.arange(12.0).reshape(4, 3)


def test_a_folder_is_copied_once_and_again_if_it_changes(memory):
    memory("part-0.npy", ROWS)
    memory("part-1.npy", -ROWS)
    memory("readme.txt", ROWS)
    copied = []
    folder = local_copy("memory://bucket/", lambda name, *_: copied.append(name))
    assert sorted(copied) == ["part-0.npy", "part-1.npy"]
    np.testing.assert_array_equal(np.load(folder / "part-1.npy"), -ROWS)
    assert local_copy("memory://bucket", lambda name, *_: copied.append(name)) == folder
    assert len(copied) == 2
    memory("part-1.npy", ROWS[:2])
    fsspec.filesystem("memory").rm("/bucket/part-0.npy")
    local_copy("memory://bucket", lambda name, *_: copied.append(name))
    assert copied[2:] == ["part-1.npy"]
    assert [file.name for file in folder.glob("*.npy")] == ["part-1.npy"]


def test_a_damaged_copy_is_replaced(memory):
    memory("a.npy", ROWS)
    path = local_copy("memory://bucket/a.npy")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    np.testing.assert_array_equal(np.load(local_copy("memory://bucket/a.npy")), ROWS)


@pytest.mark.thorough
def test_a_model_learns_from_a_url(memory):
    import aevb

    memory("a.npy", np.random.default_rng(0).normal(size=(30, 3)))
    vae = aevb.VAE(latent_dim=1, hidden=(4,), max_epochs=1, progress=False, optimizer="sgd")
    assert vae.fit("memory://bucket/a.npy").transform("memory://bucket/a.npy").shape == (30, 1)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memory://bucket/missing.npy", "memory://bucket/missing.npy cannot be read"),
        ("memory://nothing/", "memory://nothing/"),
        ("nosuch://bucket/a.npy", "nosuch://bucket/a.npy cannot be read"),
        ("https://me:secret@host/a.npy", "https://host/a.npy: the URL contains a password or a signature"),
        ("https://host/a.npy?X-Amz-Signature=f00", "https://host/a.npy: the URL contains a password or a signature"),
    ],
)
def test_what_cannot_be_read_is_named(memory, url, message):
    with pytest.raises(DataFileError) as error:
        local_copy(url)
    assert message in str(error.value)
    assert "secret@" not in str(error.value)
    assert "f00" not in str(error.value)


class Answers(http.server.SimpleHTTPRequestHandler):
    """Answers with the faults that are left, each once, and then properly."""

    faults: list[str] = []

    def do_GET(self):
        if not self.path.endswith(".npy") or not self.faults:
            return super().do_GET()
        if self.faults.pop() == "500":
            return self.send_error(500)
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        self.wfile.write(b"\x93NUMPY")
        self.close_connection = True
        return None

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    pytest.importorskip("aiohttp")
    (tmp_path / "site").mkdir()
    for number in range(2):
        np.save(tmp_path / "site" / f"part-{number}.npy", ROWS + number)
    handler = partial(Answers, directory=str(tmp_path / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()
        thread.join()
    Answers.faults = []


@pytest.mark.thorough
def test_a_folder_of_a_web_server_is_copied(server):
    folder = local_copy(f"{server}/")
    np.testing.assert_array_equal(np.load(folder / "part-1.npy"), ROWS + 1)


@pytest.mark.thorough
@pytest.mark.parametrize("faults", [["500"], ["truncated"], ["500", "truncated"]])
def test_a_server_may_fail_a_few_times(server, faults):
    Answers.faults = list(faults)
    np.testing.assert_array_equal(np.load(local_copy(f"{server}/part-0.npy")), ROWS)


@pytest.mark.thorough
def test_a_server_that_keeps_failing_is_named(server):
    Answers.faults = ["500"] * 100
    with pytest.raises(DataFileError, match=r"part-0\.npy cannot be read"):
        local_copy(f"{server}/part-0.npy")


@pytest.mark.thorough
def test_shards_are_copied_when_they_are_read(memory, monkeypatch):
    """The headers of all shards are read, and rows of some; the others stay where they are."""
    from aevb.data.remote_tables import fetched_ahead, remote_tables
    from aevb.data.table import blocks, rows_between

    for number in range(3):
        memory(f"part-{number}.npy", ROWS + number)
    tables = remote_tables("memory://bucket/")
    assert [(table.name, table.num_rows, table.num_columns) for table in tables] == [
        (f"memory://bucket/part-{number}.npy", 4, 3) for number in range(3)
    ]
    with fetched_ahead([]):
        rows = np.concatenate([rows.copy() for _, _, rows in blocks(rows_between(tables, 6, 8))])
    np.testing.assert_array_equal(rows, ROWS[2:] + 1)
    folder = remote.cache_of("memory://bucket/")
    assert [file.name for file in folder.glob("*.npy")] == ["part-1.npy"]
    fsspec.filesystem("memory").rm("/bucket/part-2.npy")
    with pytest.raises(DataFileError, match=r"memory://bucket/part-2\.npy cannot be read"):
        list(blocks(tables))


@pytest.mark.thorough
def test_a_model_learns_from_large_shards_at_a_url_as_from_files(memory, monkeypatch, tmp_path):
    import aevb
    from aevb.data import training_data

    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(training_data, "IN_MEMORY_BYTES", 100)
    rows = np.random.default_rng(0).normal(size=(300, 3))
    (tmp_path / "shards").mkdir()
    for number, part in enumerate(np.split(rows, 3)):
        memory(f"npy/{number}.npy", part)
        np.save(tmp_path / "shards" / f"{number}.npy", part)
    table, file = pyarrow.table({name: rows[:, place] for place, name in enumerate("abc")}), io.BytesIO()
    parquet.write_table(table, file, row_group_size=10)
    fsspec.filesystem("memory").pipe("/bucket/x.parquet", file.getvalue())

    def learned(source):
        vae = aevb.VAE(latent_dim=1, hidden=(4,), max_epochs=1, progress=False, optimizer="sgd")
        return vae.fit(source).transform(rows)

    here = learned(tmp_path / "shards")
    np.testing.assert_array_equal(learned("memory://bucket/npy/"), here)
    assert learned("memory://bucket/x.parquet").shape == here.shape


def test_a_folder_of_pictures_is_copied_and_read(memory):
    image = pytest.importorskip("PIL.Image")
    pictures = np.random.default_rng(0).integers(0, 256, (5, 8, 8), np.uint8)
    for number, picture in enumerate(pictures):
        data = io.BytesIO()
        image.fromarray(picture).save(data, "png")
        fsspec.filesystem("memory").pipe(f"/bucket/{number}.png", data.getvalue())
    data = open_dataset(local_copy("memory://bucket/"))
    assert data.image_shape == (8, 8)
    np.testing.assert_array_equal(np.sort(np.asarray(data.rows).sum(axis=1)), np.sort(pictures.sum(axis=(1, 2))))
