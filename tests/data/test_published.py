"""Downloads come from a server in this process, with files in the published formats and their own hashes."""

import bz2
import gzip
import http.server
import sys
import threading

import numpy as np
import pytest

from aevb.data import DataFileError, is_here, load_dataset
from aevb.data import published_files as module
from aevb.data.download import RemoteFile, cache_folder, fetch
from aevb.data.published import PUBLISHED
from aevb.files import digest

GENERATOR = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("AEVB_DATA", raising=False)
    monkeypatch.setenv("AEVB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def server():
    """Serves `files`, and counts requests."""
    files, asked = {}, []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            body = files.get(self.path)
            if body is None:
                self.send_error(404)
            elif isinstance(body, str):
                self.send_response(302)
                self.send_header("Location", body)
                self.end_headers()
            else:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        running.files, running.asked = files, asked
        running.url = f"http://127.0.0.1:{running.server_port}"
        yield running
        running.shutdown()


def remote(server, name, body, *, bases=("",), **changes):
    server.files[f"/{name}"] = body
    urls = tuple(f"{server.url}{base}/{name}" for base in bases)
    return RemoteFile(name, urls, f"sha256:{digest(body)}", 10_000_000)._replace(**changes)


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return gzip.compress(header + array.tobytes())


def test_mnist_is_downloaded_once_from_the_mirror_that_works(server, monkeypatch):
    images = GENERATOR.integers(0, 256, (70, 28, 28), dtype=np.uint8)
    labels = GENERATOR.integers(0, 10, 70, dtype=np.uint8)
    bodies = [idx(part) for part in (images[:60], labels[:60], images[60:], labels[60:])]
    files = [
        remote(server, name, body, bases=("/gone", "")) for name, body in zip(module.IDX_FILES, bodies, strict=True)
    ]
    monkeypatch.setitem(PUBLISHED, "mnist", PUBLISHED["mnist"]._replace(remote=tuple(files)))
    assert not is_here("mnist")
    heard = []
    data = load_dataset("mnist", lambda *news: heard.append(news))
    np.testing.assert_array_equal(data.rows.reshape(-1, 28, 28), images)
    np.testing.assert_array_equal(data.labels, labels)
    assert {name: (rows[0], len(rows)) for name, rows in data.parts.items()} == {
        "train": (0, 50), "valid": (50, 10), "test": (60, 10)
    }  # fmt: skip
    assert (data.image_shape, data.binarization) == ((28, 28), "grey")
    assert heard[-1][:2] == (module.IDX_FILES[-1], len(bodies[-1]))
    assert [path for path in server.asked if path.startswith("/gone")] == [f"/gone/{name}" for name in module.IDX_FILES]
    number_of_requests = len(server.asked)
    assert is_here("mnist")
    load_dataset("mnist")
    assert len(server.asked) == number_of_requests


def test_a_copy_with_another_gzip_header_is_accepted_by_its_contents(server):
    content = b"the same pixels"
    file = remote(server, "x.gz", gzip.compress(content, mtime=1))
    file = file._replace(digest="md5:" + "0" * 32, content_digest=f"md5:{digest(content, 'md5')}")
    assert gzip.decompress(fetch(file, cache_folder() / "x.gz").read_bytes()) == content


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"digest": "sha256:" + "0" * 64}, "SHA256 is .*, expected 0000"),
        ({"max_bytes": 10}, "longer than 10 bytes"),
        ({"urls": ("http://127.0.0.1:1/x",)}, "refused"),
        ({"urls": ("file:///etc/hostname",)}, "unknown url type: file"),
    ],
)
def test_a_wrong_file_is_refused_and_nothing_remains(server, change, reason):
    file = remote(server, "x", b"hello, hello")._replace(**change)
    with pytest.raises(DataFileError, match=rf"x could not be downloaded.*{reason}.*put the file at"):
        fetch(file, cache_folder() / "folder" / "x")
    assert not list((cache_folder() / "folder").iterdir())


def test_a_redirection_cannot_lead_to_a_local_file(server):
    file = remote(server, "x", b"hello")
    server.files["/x"] = "file:///etc/hostname"
    with pytest.raises(DataFileError, match="could not be downloaded"):
        fetch(file, cache_folder() / "x")


def test_a_file_that_was_changed_on_disk_is_refused(server, monkeypatch):
    body = idx(GENERATOR.integers(0, 256, (6, 28, 28), dtype=np.uint8))
    files = tuple(remote(server, name, body) for name in module.IDX_FILES)
    monkeypatch.setitem(PUBLISHED, "mnist", PUBLISHED["mnist"]._replace(remote=files))
    for name in module.IDX_FILES:
        (cache_folder() / "mnist").mkdir(parents=True, exist_ok=True)
        (cache_folder() / "mnist" / name).write_bytes(body[:-1] + b"?")
    with pytest.raises(DataFileError, match="The file was changed"):
        load_dataset("mnist")


def test_binarized_mnist_is_kept_as_bits(server, monkeypatch):
    sizes = {"train": 5, "valid": 3, "test": 2}
    bits = GENERATOR.integers(0, 2, (10, 784), dtype=np.uint8)
    parts = np.split(bits, [5, 8])
    texts = ["".join(" ".join(map(str, row)) + " \n" for row in part).encode() for part in parts]
    files = tuple(remote(server, f"{name}.amat", text) for name, text in zip(sizes, texts, strict=True))
    monkeypatch.setitem(PUBLISHED, "binarized-mnist", PUBLISHED["binarized-mnist"]._replace(remote=files))
    monkeypatch.setattr(module, "ROWS_PER_PART", sizes)
    with pytest.raises(DataFileError, match="not the bits"):
        load_dataset("binarized-mnist")
    monkeypatch.setattr(module, "_BITS_SHA256", digest(np.packbits(bits, axis=1).tobytes()))
    data = load_dataset("binarized-mnist")
    np.testing.assert_array_equal(data.rows, bits)
    assert data.binarization == "static"
    assert [len(rows) for rows in data.parts.values()] == [5, 3, 2]
    assert [path.name for path in (cache_folder() / "binarized_mnist").iterdir()] == ["binarized_mnist.npz"]


def test_frey_faces_come_from_either_form(server, monkeypatch, tmp_path):
    from scipy.io import savemat

    images = GENERATOR.integers(0, 256, (1965, 28, 20), dtype=np.uint8)
    flat = images.reshape(1965, 560)
    rda = bz2.compress(b"RDX2\nheader" + flat.size.to_bytes(4, "big") + flat.T.astype(">i4").tobytes() + b"\0rest")
    savemat(tmp_path / "frey.mat", {"ff": flat.T})
    monkeypatch.setattr(module, "_PIXELS_SHA256", digest(images.tobytes()))
    good = remote(server, "frey.rda", rda), remote(server, "frey.mat", (tmp_path / "frey.mat").read_bytes(), digest="")
    for files in (good[:1], (good[0]._replace(urls=(f"{server.url}/gone",)), good[1])):
        monkeypatch.setitem(PUBLISHED, "frey-faces", PUBLISHED["frey-faces"]._replace(remote=files))
        data = load_dataset("frey-faces")
        np.testing.assert_array_equal(data.rows, flat)
        parts = data.parts
        assert sorted(np.concatenate(list(parts.values()))) == list(range(1965))
        # Blocks of a film: few test frames have a neighbour among the training frames.
        assert np.isin(parts["test"] + 1, parts["train"]).mean() < 0.06
        (cache_folder() / "frey_faces" / "frey_faces.npz").unlink()


@pytest.mark.parametrize("name", ["mnist", "binarized-mnist", "frey-faces"])
def test_the_published_files_themselves(name, monkeypatch):
    from os import environ

    monkeypatch.undo()
    if "AEVB_DATA" not in environ or not is_here(name):
        pytest.skip(f"{name} is not available: set AEVB_DATA to a folder that contains it")
    data = load_dataset(name)  # the hashes are checked
    assert len(data.rows) == sum(map(len, data.parts.values()))


@pytest.mark.skipif(sys.platform != "linux", reason="the folder depends on the system")
def test_downloads_go_to_the_cache_folder_of_the_system(monkeypatch, tmp_path):
    monkeypatch.delenv("AEVB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "aevb"
    assert not cache_folder().exists()
