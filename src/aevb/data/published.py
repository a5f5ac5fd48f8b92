"""The data sets of the paper and the literature, as published: downloaded once, then read from disk.

Splits are those used in the literature. MNIST and Fashion-MNIST: the first 50,000 training images, the remaining 10,000
for validation, and the test images. Binarized MNIST is published in three parts. Frey Face is a film without a
published split: its frames are cut into blocks of 20; of every ten blocks the ninth is for validation and the tenth for
testing, so that few test images have a neighbour among the training images.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from aevb.data import download
from aevb.data.download import RemoteFile
from aevb.data.published_files import (
    FREY_SHAPE,
    IDX_FILES,
    ROWS_PER_PART,
    Contents,
    Report,
    get_all,
    get_binarized,
    get_frey,
    read_binarized,
    read_frey,
    read_idx,
)
from aevb.data.tables import DataFileError


class Published(NamedTuple):
    """How a published data set is downloaded and read."""

    folder: str  # below the cache or AEVB_DATA
    files: tuple[str, ...]  # the files in that folder
    get: Callable[["Published", Path, Report], None]  # downloads missing files into a folder
    read: Callable[["Published", list[Path]], Contents]
    remote: tuple[RemoteFile, ...]
    image_shape: tuple[int, ...]


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


def _idx_set(folder, bases, digests, content_digests=(None,) * 4):
    sizes = (40_000_000, 100_000, 8_000_000, 20_000)
    remote = tuple(
        RemoteFile(name, tuple(base + name for base in bases), digest, size, content)
        for name, digest, size, content in zip(IDX_FILES, digests, sizes, content_digests, strict=True)
    )
    return Published(folder, IDX_FILES, get_all, read_idx, remote, (28, 28))


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
        get_binarized,
        read_binarized,
        tuple(
            RemoteFile(
                f"binarized_mnist_{part}.amat",
                tuple(
                    f"{scheme}://www.cs.toronto.edu/~larocheh/public/datasets/binarized_mnist/binarized_mnist_{part}.amat"
                    for scheme in ("https", "http")
                ),
                f"sha256:{digest}",
                1_600 * ROWS_PER_PART[part],
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
        get_frey,
        read_frey,
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
        FREY_SHAPE[1:],
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
