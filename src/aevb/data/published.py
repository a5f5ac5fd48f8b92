"""The data sets of the paper and the literature, as published: downloaded once, then read from disk.

Splits are those used in the literature. MNIST and Fashion-MNIST: the first 50,000 training images, the remaining 10,000
for validation, and the test images. Binarized MNIST is published in three parts. Frey Face is a film without a
published split: its frames are cut into blocks of 20; of every ten blocks the ninth is for validation and the tenth for
testing, so that few test images have a neighbour among the training images.
"""

import bz2
import gzip
import io
import zipfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from aevb.data import download
from aevb.data.download import RemoteFile
from aevb.data.tables import DataFileError
from aevb.files import digest as digest_of
from aevb.files import written_whole

Report = Callable[[str, int, int], None]  # (file, bytes received, maximum bytes)
Parts = dict[str, np.ndarray]  # train, valid, test: row indices


class Contents(NamedTuple):
    """Rows, labels if there are any, and the row indices of each part."""

    rows: np.ndarray
    labels: np.ndarray | None
    parts: Parts


class Published(NamedTuple):
    """How a published data set is downloaded and read."""

    folder: str  # below the cache or AEVB_DATA
    files: tuple[str, ...]  # the files in that folder
    get: Callable[["Published", Path, Report], None]  # downloads missing files into a folder
    read: Callable[["Published", list[Path]], Contents]
    remote: tuple[RemoteFile, ...]
    image_shape: tuple[int, int]


def paths(published: Published) -> list[Path] | None:
    """Return the paths of its files; None if one of them is missing."""
    found = [download.find(published.folder, name) for name in published.files]
    return None if None in found else found  # pyright: ignore[reportReturnType]


def obtain(published: Published, report: Report = lambda *_: None) -> list[Path]:
    """Return the paths of its files, after downloading them if necessary.

    Raises:
        DataFileError: They could not be downloaded.
    """
    if (found := paths(published)) is None:
        folder = download.cache_folder() / published.folder
        try:
            published.get(published, folder, report)
        except OSError as error:
            raise DataFileError(f"{folder}: cannot write there ({error}). Set AEVB_CACHE to another folder.") from error
        found = [folder / name for name in published.files]
    return found


def read(published: Published, report: Report = lambda *_: None) -> Contents:
    """Return its contents, after downloading them if necessary.

    Raises:
        DataFileError: They could not be downloaded, or a file is not what was published.
    """
    return published.read(published, obtain(published, report))


def _fetch(file, path, report):
    return download.fetch(file, path, lambda size: report(file.name, size, file.max_bytes))


# ---- MNIST and Fashion-MNIST: four idx files ------------------------------------------------------------------------

_IDX = tuple(
    f"{name}-ubyte.gz" for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
)


def _get_all(published, folder, report):
    for file in published.remote:
        if download.find(published.folder, file.name) is None:
            _fetch(file, folder / file.name, report)


def _read_idx(published, files):
    for file, path in zip(published.remote, files, strict=True):
        download.check(file, path)
    images, labels, test_images, test_labels = (_idx(path) for path in files)
    rows = np.concatenate([images, test_images]).reshape(len(images) + len(test_images), -1)
    train, valid, test = np.split(np.arange(len(rows)), [len(images) * 5 // 6, len(images)])
    return Contents(rows, np.concatenate([labels, test_labels]), {"train": train, "valid": valid, "test": test})


def _idx(path):
    with _reading(path), gzip.open(path) as file:
        data = file.read(2**28)
        num_axes = data[3]
        shape = np.frombuffer(data, ">i4", num_axes, 4)
        return np.frombuffer(data, np.uint8, offset=4 + 4 * num_axes).reshape(shape)


# ---- binarized MNIST: three text files of zeros and ones ------------------------------------------------------------

_PARTS = {"train": 50_000, "valid": 10_000, "test": 10_000}
_BITS_SHA256 = "c462f82a020638a4d5d8d44e4c83242ee0145ee1d125869d0e030c35011837e6"  # of the packed bits of all parts


def _get_binarized(published, folder, report):
    parts = {}
    for name, file in zip(_PARTS, published.remote, strict=True):
        path = _fetch(file, folder / file.name, report)
        digits = np.frombuffer(path.read_bytes(), np.uint8)  # "0 1 0 ...\n"
        parts[name] = (digits[(digits == 48) | (digits == 49)] - 48).reshape(-1, 784)
    _check_bits(list(parts.values()), folder)
    _keep(folder / published.files[0], **parts)
    for file in published.remote:
        (folder / file.name).unlink()


def _read_binarized(published, files):
    with _reading(files[0]), np.load(files[0], allow_pickle=False) as archive:
        parts = [archive[name] for name in _PARTS]
    _check_bits(parts, files[0])
    train, valid, test = np.split(np.arange(sum(map(len, parts))), np.cumsum([len(part) for part in parts])[:2])
    return Contents(np.concatenate(parts), None, {"train": train, "valid": valid, "test": test})


def _check_bits(parts, path):
    bits = np.packbits(np.concatenate(parts), axis=1)
    if [len(part) for part in parts] != list(_PARTS.values()) or digest_of(bits.tobytes()) != _BITS_SHA256:
        raise DataFileError(f"{path}: these are not the bits of the published binarized MNIST.")


# ---- Frey Face: one array inside an R or MATLAB file ----------------------------------------------------------------

_FREY = (1965, 28, 20)
_PIXELS_SHA256 = "2438ba4f0d2a6bd8bac43de756141eaa33c8d248dd613d464bdb1210d9b7af78"


def _get_frey(published, folder, report):
    failures = []
    for file in published.remote:
        raw = folder / file.name
        try:
            _fetch(file, raw, report)
            images = _FREY_READERS[raw.suffix](raw)
            _check_pixels(images, raw)
            return _keep(folder / published.files[0], images=images)
        except DataFileError as error:
            failures.append(str(error))
        finally:
            raw.unlink(missing_ok=True)
    raise DataFileError(" ".join(failures))


def _from_rda(path):
    """Read the integers in an R data file: a big-endian count, then that many big-endian numbers, in column order."""
    num_images, height, width = _FREY
    count = num_images * height * width
    with _reading(path):
        data = bz2.decompress(path.read_bytes())
        start = data.index(count.to_bytes(4, "big")) + 4
        pixels = np.frombuffer(data, ">i4", count, start).astype(np.uint8)
    return pixels.reshape(height * width, num_images).T.reshape(_FREY)


def _from_mat(path):
    from scipy.io import loadmat

    with _reading(path):
        return np.ascontiguousarray(loadmat(io.BytesIO(path.read_bytes()))["ff"].T).reshape(_FREY).astype(np.uint8)


_FREY_READERS: dict[str, Callable[[Path], np.ndarray]] = {".rda": _from_rda, ".mat": _from_mat}


def _read_frey(published, files):
    with _reading(files[0]), np.load(files[0], allow_pickle=False) as archive:
        images = archive["images"]
    _check_pixels(images, files[0])
    number = np.arange(len(images))
    block = number // 20 % 10
    parts = {"train": number[block < 8], "valid": number[block == 8], "test": number[block == 9]}
    return Contents(images.reshape(len(images), -1), None, parts)


def _check_pixels(images, path):
    if digest_of(np.ascontiguousarray(images).tobytes()) != _PIXELS_SHA256:
        raise DataFileError(f"{path}: these are not the pixels of Frey Face.")


# ---- shared ---------------------------------------------------------------------------------------------------------


def _keep(path, **arrays):
    with written_whole(path) as scratch, open(scratch, "wb") as file:
        np.savez_compressed(file, **arrays)


@contextmanager
def _reading(path):
    try:
        yield
    except (OSError, ValueError, KeyError, EOFError, IndexError, zipfile.BadZipFile) as error:
        raise DataFileError(f"{path} cannot be read: {error}. Delete it to download it again.") from error


def _idx_set(folder, bases, digests, content_digests=(None,) * 4):
    sizes = (40_000_000, 100_000, 8_000_000, 20_000)
    remote = tuple(
        RemoteFile(name, tuple(base + name for base in bases), digest, size, content)
        for name, digest, size, content in zip(_IDX, digests, sizes, content_digests, strict=True)
    )
    return Published(folder, _IDX, _get_all, _read_idx, remote, (28, 28))


PUBLISHED: dict[str, Published] = {
    "mnist": _idx_set(
        "mnist",
        ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
        (
            "sha256:440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "sha256:3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "sha256:8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "sha256:f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
    "binarized-mnist": Published(
        "binarized_mnist",
        ("binarized_mnist.npz",),
        _get_binarized,
        _read_binarized,
        tuple(
            RemoteFile(
                f"binarized_mnist_{part}.amat",
                tuple(
                    f"{scheme}://www.cs.toronto.edu/~larocheh/public/datasets/binarized_mnist/binarized_mnist_{part}.amat"
                    for scheme in ("https", "http")
                ),
                f"sha256:{digest}",
                1_600 * _PARTS[part],
            )
            for part, digest in (
                ("train", "ad693b29f94c14277b095f5238ddefbbdaaae0939789dd2f4f0205278cee3e4d"),
                ("valid", "1de3d397c40fe8eeb33dafd4099a1f665ec01e96d9be234aaeeac8a34930e2e2"),
                ("test", "e6687bfea3f820c174f33b7865140b2a2dd2930ef786f35d45795fc193b5ab2c"),
            )
        ),
        (28, 28),
    ),
    "frey-faces": Published(
        "frey_faces",
        ("frey_faces.npz",),
        _get_frey,
        _read_frey,
        (
            RemoteFile(
                "frey_faces.rda",
                (
                    "https://raw.githubusercontent.com/cran/cems/68c81292f02211234a394ba40c6e97f1284c81d0/"
                    "data/frey_faces.rda",
                ),
                "sha256:b98840cc8c98f9158d04c46d48b40ac358134f44f1ce046db40b7376fcd5dff4",
                5_000_000,
            ),
            # The hash of this file is not published; the hash of the pixels is always checked.
            RemoteFile("frey_rawface.mat", ("https://cs.nyu.edu/~roweis/data/frey_rawface.mat",), "", 5_000_000),
        ),
        _FREY[1:],
    ),
    "fashion-mnist": _idx_set(
        "fashion_mnist",
        (
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        ),
        (
            "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "md5:25c81989df183df01b3e8a0aad5dffbe",
            "md5:bef4ecab320f06d8554ea6380940ec79",
            "md5:bb300cfdad3c16e7a12a480ee83cd310",
        ),
        (
            "md5:f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "md5:9018921c3c673c538a1fc5bad174d6f9",
            "md5:8181f5470baa50b63fa0f6fddb340f0a",
            "md5:15d484375f8d13e6eb1aabb0c3f46965",
        ),
    ),
}
