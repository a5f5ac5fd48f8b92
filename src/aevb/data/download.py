"""Files from the network: verified by their hash, written atomically, and downloaded once.

Files are downloaded over TLS where the publisher offers it. Two data sets are also published over plain HTTP; there the
hash, which is part of this program, protects against changed files.
"""

import gzip
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from aevb.data.tables import DataFileError
from aevb.files import cache_folder, digest, written_whole

_BLOCK = 2**18
_TIMEOUT = 30  # seconds without a byte
_MOST = 2**30  # bytes to decompress at most: a gzip file may claim any size


class RemoteFile(NamedTuple):
    """A file and where it is published.

    Args:
        name: File name.
        urls: URLs of the same bytes, tried in this order.
        digest: ``"sha256:..."`` or ``"md5:..."`` of the file; empty if the caller checks the contents.
        max_bytes: Upper limit on its size; a longer response is an error.
        content_digest: Digest of the contents of a gzip file, where copies with different headers exist.
    """

    name: str
    urls: tuple[str, ...]
    digest: str
    max_bytes: int
    content_digest: str | None = None


def data_folders() -> list[Path]:
    """Return the folders that are searched for data sets: ``AEVB_DATA``, if it is set, and the cache."""
    named = os.environ.get("AEVB_DATA")
    return [*([Path(named)] if named else []), cache_folder()]


def writable_folder(name: str) -> Path:
    """Return the folder of this name for downloads, which is made if it does not exist.

    Raises:
        DataFileError: It cannot be written to.
    """
    folder = cache_folder() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataFileError(f"{folder}: cannot write there ({error}). Set AEVB_CACHE to another folder.") from error
    return folder


def find(folder: str, name: str) -> Path | None:
    """Return the path of this file in the first folder that has it, or None."""
    return next((path for base in data_folders() if (path := base / folder / name).is_file()), None)


def fetch(file: RemoteFile, path: Path, report: Callable[[int], None] = lambda size: None) -> Path:
    """Download a file from the first URL that returns it unchanged.

    Args:
        file: The file to download.
        path: Where to write it; it appears there complete and verified, or not at all.
        report: Called with the bytes received so far.

    Raises:
        DataFileError: No URL worked; the message gives the reason for each.
    """
    failures = []
    for url in file.urls:
        try:
            with written_whole(path) as scratch:
                _receive(file, url, scratch, report)
                check(file, scratch)
            return path
        except (OSError, DataFileError) as error:  # URLError and timeouts are OSErrors
            failures.append(f"{url}: {getattr(error, 'reason', None) or error}")
    raise DataFileError(
        f"{file.name} could not be downloaded. {'; '.join(failures)}. Try again later, or put the file at {path}."
    )


def check(file: RemoteFile, path: Path) -> None:
    """Check the hash of a file.

    Raises:
        DataFileError: The hash differs; the message gives both.
    """
    if not file.digest:
        return
    kind, expected = file.digest.split(":")
    found = digest(path.read_bytes(), kind)
    if found == expected or (file.content_digest and _content_digest(path, kind) == file.content_digest.split(":")[1]):
        return
    raise DataFileError(f"{path.name}: its {kind.upper()} is {found}, expected {expected}. The file was changed.")


def _content_digest(path, kind):
    try:
        with gzip.open(path) as content:
            return digest(content.read(_MOST), kind)
    except (OSError, EOFError):
        return None


def _receive(file, url, scratch, report):
    request = urllib.request.Request(url, headers={"User-Agent": "aevb"})
    with _OPENER.open(request, timeout=_TIMEOUT) as answer, open(scratch, "wb") as output:
        size = 0
        while block := answer.read(_BLOCK):
            size += len(block)
            if size > file.max_bytes:
                raise DataFileError(f"the response is longer than {file.max_bytes:,} bytes")
            output.write(block)
            report(size)


class _NoDowngrade(urllib.request.HTTPRedirectHandler):
    """Rejects redirects from HTTPS to an unencrypted URL."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        if req.type == "https" and not newurl.startswith("https:"):
            raise urllib.error.URLError(f"redirected to {newurl}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


# No file: or ftp: URLs, even after a redirect.
_OPENER = urllib.request.OpenerDirector()
for _handler in (
    urllib.request.ProxyHandler(),
    urllib.request.HTTPHandler(),
    urllib.request.HTTPSHandler(),
    urllib.request.HTTPDefaultErrorHandler(),
    urllib.request.HTTPErrorProcessor(),
    urllib.request.UnknownHandler(),
    _NoDowngrade(),
):
    _OPENER.add_handler(_handler)
