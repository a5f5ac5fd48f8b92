"""Data at URLs, such as s3://, gs:// or https://: read by fsspec, and kept in a local cache with checksums.

Credentials are the business of fsspec's libraries, which have their own files and environment variables: a URL is
written to `config.toml` and reports, so one that contains a password or a signature is refused.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from filelock import FileLock

from aevb.data.download import writable_folder
from aevb.data.tables import FORMATS, ending_of
from aevb.errors import DataFileError
from aevb.files import written_whole

BLOCK = 2**22  # bytes read at once
ATTEMPTS, PAUSE = 3, 1.0  # for each file, and seconds between the first two
SECONDS = 30  # without a byte, over HTTP
_SECRETS = re.compile(r"signature|token|sig$|secret|password|credential|accesskey|access_key|api_?key", re.IGNORECASE)
_VERSIONS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "generation", "updated")


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
        url: A file with one of the endings that `fit` reads, or a folder of such files, without subfolders.
        report: Called with a file's name, the bytes received so far and its size.

    Raises:
        DataFileError: It cannot be read; the message names the file.
    """
    _check_no_secret(url)
    system, path = _opened(url)
    is_file = ending_of(Path(urlsplit(url).path)) in FORMATS
    name = hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16]
    folder = writable_folder("remote") / name
    (folder / ".about").mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        paths = [path] if is_file else _listed(system, path, url)
        for place in paths:
            _copy(system, place, folder, url, report)
        kept = {_name(place) for place in paths}
        for file in folder.iterdir():
            if file.is_file() and file.name not in kept and not file.name.startswith("."):
                file.unlink()  # it is no longer there
    return folder / _name(paths[0]) if is_file else folder


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
        with _named(url):
            import aiohttp  # pyright: ignore[reportMissingImports]

            times = {"total": None, "sock_connect": SECONDS, "sock_read": SECONDS}
            options["client_kwargs"] = {"timeout": aiohttp.ClientTimeout(**times)}
    with _named(url):
        return fsspec.core.url_to_fs(url, **options)


class _named:  # noqa: N801
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
    """Return the data files of a folder."""
    with _named(url):
        found = sorted(entry["name"] for entry in system.ls(path, detail=True) if entry.get("type") != "directory")
    files = [place for place in found if ending_of(Path(_name(place))) in FORMATS]
    if not files:
        raise DataFileError(f"{url}: there are no files ending in {', '.join(FORMATS)}. Check the address.")
    return files


def _copy(system, place, folder, url, report):
    """Copy one file, unless the copy is still good."""
    name = _name(place)
    where = url if url.rstrip("/").endswith(name) else f"{url.rstrip('/')}/{name}"
    with _named(where):
        facts = system.info(place)
    version = {"size": facts.get("size"), **{key: str(facts[key]) for key in _VERSIONS if facts.get(key) is not None}}
    about, target = folder / ".about" / f"{name}.json", folder / name
    if target.is_file() and about.is_file():
        known = json.loads(about.read_text())
        if known["version"] == version and known["sha256"] == _sha256(target):
            return
    found = ""
    for attempt in range(ATTEMPTS):
        try:
            with _named(where), written_whole(target) as scratch:
                found = _receive(system, place, scratch, version["size"], lambda size: report(name, size, 0))
            break
        except DataFileError:
            if attempt + 1 == ATTEMPTS:
                raise
            time.sleep(PAUSE * 2**attempt)
    with written_whole(about) as scratch:
        scratch.write_text(json.dumps({"version": version, "sha256": found}))


def _receive(system, place, scratch, size, report):
    """Copy a file; return its SHA-256."""
    found, received = hashlib.sha256(usedforsecurity=False), 0
    with system.open(place, "rb") as source, open(scratch, "wb") as target:
        while block := source.read(BLOCK):
            found.update(block)
            target.write(block)
            received += len(block)
            report(received)
    if size is not None and received != size:
        raise DataFileError(f"{place}: {received:,} of {size:,} bytes arrived.")
    return found.hexdigest()


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _name(place):
    path = urlsplit(place).path if "://" in place else place
    return path.rstrip("/").rpartition("/")[2]
