"""The files of published data sets, in their own formats: downloaded into a folder, checked and read.

MNIST and Fashion-MNIST are four idx files each; binarized MNIST is published as text, three files of zeros and ones;
Frey Face is one array inside an R or MATLAB file. The last two are kept in `.npz` files.
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


def _fetch(file, path, report):
    return download.fetch(file, path, lambda size: report(file.name, size, file.max_bytes))


# ---- MNIST and Fashion-MNIST: four idx files ------------------------------------------------------------------------

IDX_FILES = tuple(
    f"{name}-ubyte.gz" for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
)


def get_all(published, folder, report) -> None:
    """Download all remote files that are missing."""
    for file in published.remote:
        if download.find(published.folder, file.name) is None:
            _fetch(file, folder / file.name, report)


def read_idx(published, files) -> Contents:
    """Read the images and labels of four idx files, after checking their hashes."""
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

ROWS_PER_PART = {"train": 50_000, "valid": 10_000, "test": 10_000}
_BITS_SHA256 = "c462f82a020638a4d5d8d44e4c83242ee0145ee1d125869d0e030c35011837e6"  # of the packed bits of all parts


def get_binarized(published, folder, report) -> None:
    """Download the three text files of binarized MNIST, and keep their bits."""
    parts = {}
    for name, file in zip(ROWS_PER_PART, published.remote, strict=True):
        path = _fetch(file, folder / file.name, report)
        digits = np.frombuffer(path.read_bytes(), np.uint8)  # "0 1 0 ...\n"
        parts[name] = (digits[(digits == 48) | (digits == 49)] - 48).reshape(-1, 784)
    _check_bits(list(parts.values()), folder)
    _keep(folder / published.files[0], **parts)
    for file in published.remote:
        (folder / file.name).unlink()


def read_binarized(published, files) -> Contents:
    """Read the bits of binarized MNIST."""
    with _reading(files[0]), np.load(files[0], allow_pickle=False) as archive:
        parts = [archive[name] for name in ROWS_PER_PART]
    _check_bits(parts, files[0])
    train, valid, test = np.split(np.arange(sum(map(len, parts))), np.cumsum([len(part) for part in parts])[:2])
    return Contents(np.concatenate(parts), None, {"train": train, "valid": valid, "test": test})


def _check_bits(parts, path):
    bits = np.packbits(np.concatenate(parts), axis=1)
    if [len(part) for part in parts] != list(ROWS_PER_PART.values()) or digest_of(bits.tobytes()) != _BITS_SHA256:
        raise DataFileError(f"{path}: these are not the bits of the published binarized MNIST.")


# ---- Frey Face: one array inside an R or MATLAB file ----------------------------------------------------------------

FREY_SHAPE = (1965, 28, 20)
_PIXELS_SHA256 = "2438ba4f0d2a6bd8bac43de756141eaa33c8d248dd613d464bdb1210d9b7af78"


def get_frey(published, folder, report) -> None:
    """Download Frey Face in the first form that is available, and keep its images."""
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
    num_images, height, width = FREY_SHAPE
    count = num_images * height * width
    with _reading(path):
        data = bz2.decompress(path.read_bytes())
        start = data.index(count.to_bytes(4, "big")) + 4
        pixels = np.frombuffer(data, ">i4", count, start).astype(np.uint8)
    return pixels.reshape(height * width, num_images).T.reshape(FREY_SHAPE)


def _from_mat(path):
    from scipy.io import loadmat

    with _reading(path):
        return np.ascontiguousarray(loadmat(io.BytesIO(path.read_bytes()))["ff"].T).reshape(FREY_SHAPE).astype(np.uint8)


_FREY_READERS: dict[str, Callable[[Path], np.ndarray]] = {".rda": _from_rda, ".mat": _from_mat}


def read_frey(published, files) -> Contents:
    """Read the images of Frey Face; its parts are blocks of frames."""
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
