"""Files from the network: checked by their hash, whole or not at all, and fetched once.

A file comes over TLS where its publisher offers that. Two sets are published over plain HTTP besides: there the hash,
which is part of this program, is what keeps a changed file out.
"""

import gzip
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from aevb.data.tables import DataFileError
from aevb.files import digest, written_whole

_BLOCK = 2**18
_TIMEOUT = 30  # seconds without a byte
_MOST = 2**30  # a gzip file may say anything about its content


class RemoteFile(NamedTuple):
    """A file and where it is published.

    Args:
        name: Of the file.
        urls: Addresses that hold the same bytes, tried in this order.
        digest: ``"sha256:..."`` or ``"md5:..."`` of the file; empty if whoever asks checks what it holds.
        max_bytes: More than its size; a longer answer is refused.
        content_digest: Of what a gzip file holds, where copies with other headers go round.
    """

    name: str
    urls: tuple[str, ...]
    digest: str
    max_bytes: int
    content_digest: str | None = None


def data_folders() -> list[Path]:
    """Return where data sets are looked for: the folder of ``AEVB_DATA``, if it is set, and the cache."""
    named = os.environ.get("AEVB_DATA")
    return [*([Path(named)] if named else []), cache_folder()]


def cache_folder() -> Path:
    """Return where downloads are kept: the folder of ``AEVB_CACHE``, or this system's place for such things."""
    if named := os.environ.get("AEVB_CACHE"):
        return Path(named)
    from platformdirs import user_cache_path

    return user_cache_path("aevb", appauthor=False, opinion=False)


def find(folder: str, name: str) -> Path | None:
    """Return the first place that has this file, if any."""
    return next((path for base in data_folders() if (path := base / folder / name).is_file()), None)


def fetch(file: RemoteFile, path: Path, report: Callable[[int], None] = lambda size: None) -> Path:
    """Download a file from the first address that gives it unchanged.

    Args:
        file: Which.
        path: Where it shall be; it is there whole and checked, or not at all.
        report: Called with the bytes received so far.

    Raises:
        DataFileError: No address gave it; why is said for each.
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
    """Refuse a file whose hash is another.

    Raises:
        DataFileError: Saying both hashes.
    """
    if not file.digest:
        return
    kind, wanted = file.digest.split(":")
    found = digest(path.read_bytes(), kind)
    if found == wanted or (file.content_digest and _content_digest(path, kind) == file.content_digest.split(":")[1]):
        return
    raise DataFileError(f"{path.name}: its {kind.upper()} is {found}, it should be {wanted}. The file was changed.")


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
                raise DataFileError(f"the answer is longer than {file.max_bytes:,} bytes")
            output.write(block)
            report(size)


class _NoDowngrade(urllib.request.HTTPRedirectHandler):
    """Redirections that leave TLS are refused."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        if req.type == "https" and not newurl.startswith("https:"):
            raise urllib.error.URLError(f"redirected to {newurl}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


# No file: or ftp: addresses, whatever a redirection says.
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
