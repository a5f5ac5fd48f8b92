"""Data at URLs, such as s3://, gs:// or https://: read by fsspec, and kept in a local cache with checksums.

Credentials are the business of fsspec's libraries, which have their own files and environment variables: a URL is
written to `config.toml` and reports, so one that contains a password or a signature is refused.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, final
from urllib.parse import parse_qsl, urlsplit

from filelock import FileLock

from aevb.data.download import writable_folder
from aevb.data.image_folder import ENDINGS as PICTURES
from aevb.data.tables import FORMATS, ending_of
from aevb.errors import DataFileError
from aevb.files import written_whole

BLOCK = 2**22  # bytes read at once
HEAD_BYTES = 2**16  # read at once of a file of which only the beginning or end is needed
ATTEMPTS, PAUSE = 3, 1.0  # for each file, and seconds between the first two
SECONDS = 30  # without a byte, over HTTP and from S3
_SECRETS = re.compile(r"signature|token|sig$|secret|password|credential|accesskey|access_key|api_?key", re.IGNORECASE)
_VERSIONS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "generation", "updated")

T = TypeVar("T")


def is_url(source: Any) -> bool:
    """Whether a source is a URL rather than a path.

    Example:
        >>> is_url("s3://bucket/part-0.npy"), is_url("C:/data.npy"), is_url("data.npy")
        (True, False, False)
    """
    return isinstance(source, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", source) is not None


def nearby(source: Any, report: Callable[[str, int, int], None] = lambda *_: None) -> Any:
    """Return a source as it is, or the path of a local copy if it is a URL."""
    return local_copy(source, report) if is_url(source) else source


def local_copy(url: str, report: Callable[[str, int, int], None] = lambda *_: None) -> Path:
    """Return a local copy of the data at a URL: of a file, or a folder with all data files of a folder.

    A file that was copied before is copied again only if its size or version has changed; its checksum is verified.
    Processes of one host share the copies.

    Args:
        url: A file with one of the endings that `fit` reads, or a folder of such files or of pictures, without
            subfolders.
        report: Called with a file's name, the bytes received so far and its size.

    Raises:
        DataFileError: It cannot be read; the message names the file.
    """
    shards, folder = shards_at(url), cache_of(url)
    with FileLock(folder / ".lock"):
        for shard in shards:
            shard.copied(report)
        kept = {shard.name for shard in shards}
        for file in folder.iterdir():
            if file.is_file() and file.name not in kept and not file.name.startswith("."):
                file.unlink()  # it is no longer there
    return folder / shards[0].name if is_file(url) else folder


def is_file(url: str) -> bool:
    """Whether a URL is that of a data file rather than a folder."""
    return ending_of(Path(urlsplit(url).path)) in FORMATS


def cache_of(url: str) -> Path:
    """Return the folder of the copies of a file or folder, which exists."""
    folder = writable_folder("remote") / hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16]
    (folder / ".about").mkdir(parents=True, exist_ok=True)
    return folder


@final
class Shard:
    """A data file at a URL.

    Args:
        system: Its file system.
        place: Its path there.
        url: The URL that was given, of the file or its folder.
    """

    def __init__(self, system: Any, place: str, url: str):
        self.system, self.place, self.name = system, place, _name(place)
        self.url = url if url.rstrip("/").endswith(self.name) else f"{url.rstrip('/')}/{self.name}"
        self._folder = cache_of(url)

    def copied(self, report: Callable[[str, int, int], None] = lambda *_: None) -> Path:
        """Return the path of the local copy; a file is copied once, also by several processes of a host."""
        with FileLock(self._folder / ".about" / f"{self.name}.lock"):
            _copy(self, self._folder, report)
        return self._folder / self.name

    def head(self, read: Callable[[Any], T]) -> T:
        """Return what a function reads from the file itself, which is not copied."""

        def attempt():
            with named(self.url), self.system.open(self.place, "rb", block_size=HEAD_BYTES) as file:
                return read(file)

        return _tried(attempt)


def shards_at(url: str) -> list[Shard]:
    """Return the data file at a URL, or all those of a folder, in the order of their names."""
    _check_no_secret(url)
    system, path = _opened(url)
    return [Shard(system, place, url) for place in ([path] if is_file(url) else _listed(system, path, url))]


def _check_no_secret(url):
    parts = urlsplit(url)
    if parts.password or any(_SECRETS.search(name) for name, _ in parse_qsl(parts.query)):
        place = f"{parts.scheme}://{parts.hostname}{parts.path}"
        raise DataFileError(
            f"{place}: the URL contains a password or a signature, and URLs are written to config.toml and reports. "
            "Remove it, and give it to the library that reads the URL, by its own settings or environment variables."
        )


def _opened(url):
    """Return the file system of a URL, and its path there."""
    try:
        import fsspec  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        raise DataFileError(
            f"{url}: URLs are read by fsspec, which is not installed: pip install 'aevb[remote]'. Or download the data "
            "and give their path."
        ) from None
    options: dict[str, Any] = {}
    if url.startswith("http"):
        with named(url):
            import aiohttp  # pyright: ignore[reportMissingImports]

            times = {"total": None, "sock_connect": SECONDS, "sock_read": SECONDS}
            options["client_kwargs"] = {"timeout": aiohttp.ClientTimeout(**times)}
    elif url.startswith("s3"):
        options["config_kwargs"] = {"connect_timeout": SECONDS, "read_timeout": SECONDS}
    with named(url):
        return fsspec.core.url_to_fs(url, **options)


class named:  # noqa: N801
    """Context manager in which errors of any library become one that names the URL."""

    def __init__(self, url: str):
        self._url = url

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if isinstance(error, Exception) and not isinstance(error, DataFileError):
            hint = f" Install it: pip install {error.name}." if isinstance(error, ModuleNotFoundError) else ""
            said = str(error) or type(error).__name__
            raise DataFileError(f"{self._url} cannot be read: {said}.{hint}") from error


def _listed(system, path, url):
    """Return the data files of a folder, or its pictures if it has none."""
    with named(url):
        found = sorted(entry["name"] for entry in system.ls(path, detail=True) if entry.get("type") != "directory")
    for kind in (FORMATS, PICTURES):
        if files := [place for place in found if ending_of(Path(_name(place))) in kind]:
            return files
    endings = ", ".join([*FORMATS, *sorted(PICTURES)])
    raise DataFileError(f"{url}: there are no files ending in {endings}. Check the address.")


def _copy(shard, folder, report):
    """Copy one file, unless the copy is still good."""
    name, where = shard.name, shard.url
    with named(where):
        facts = shard.system.info(shard.place)
    version = {"size": facts.get("size"), **{key: str(facts[key]) for key in _VERSIONS if facts.get(key) is not None}}
    about, target = folder / ".about" / f"{name}.json", folder / name
    if target.is_file() and about.is_file():
        known = json.loads(about.read_text())
        if known["version"] == version and known["sha256"] == _sha256(target):
            return

    def attempt():
        with named(where), written_whole(target) as scratch:
            return _receive(shard, scratch, version["size"], lambda size: report(name, size, 0))

    found = _tried(attempt)
    with written_whole(about) as scratch:
        scratch.write_text(json.dumps({"version": version, "sha256": found}))


def _tried(attempt):
    """Return what a function returns, which is called again if it fails, after a pause."""
    for number in range(1, ATTEMPTS):
        with suppress(DataFileError):
            return attempt()
        time.sleep(PAUSE * 2 ** (number - 1))
    return attempt()


def _receive(shard, scratch, size, report):
    """Copy a file; return its SHA-256."""
    found, received = hashlib.sha256(usedforsecurity=False), 0
    with shard.system.open(shard.place, "rb") as source, open(scratch, "wb") as target:
        while block := source.read(BLOCK):
            found.update(block)
            target.write(block)
            received += len(block)
            report(received)
    if size is not None and received != size:
        raise DataFileError(f"{shard.url}: {received:,} of {size:,} bytes arrived.")
    return found.hexdigest()


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _name(place):
    path = urlsplit(place).path if "://" in place else place
    return path.rstrip("/").rpartition("/")[2]
