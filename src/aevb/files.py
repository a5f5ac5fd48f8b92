"""Atomic writing of files, and texts with a checksum."""

import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from aevb.errors import WrongTypeError, shown

_SEAL = '{\n "sha256": "'  # how a sealed text begins; 64 digits follow


@contextmanager
def written_whole(path) -> Iterator[Path]:
    """Yield a temporary path to write to; at the end of the block the file replaces the one at `path` atomically.

    It is synced to disk first, so that it also survives a power cut. If the block fails, the old file is unchanged.

    Args:
        path: Path of the file; its folder is created if necessary.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "note.txt"
        >>> with written_whole(path) as scratch:
        ...     _ = scratch.write_text("hello")
        >>> path.read_text()
        'hello'
    """
    path = Path(path)
    made = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield scratch
        _sync(scratch)
        os.replace(scratch, path)
        for folder in (path.parent, *(folder.parent for folder in made)):  # a new folder is an entry in its parent
            _sync(folder)
    finally:
        scratch.unlink(missing_ok=True)


@contextmanager
def one_at_a_time(folder) -> Iterator[None]:
    """Exclude other processes from this block for the same folder, which need not exist; some systems have no locks.

    It locks the nearest existing parent and leaves nothing behind: filelock would leave a file next to each model.
    """
    held = None
    with suppress(OSError, ModuleNotFoundError):
        import fcntl

        held = os.open(next(place for place in Path(folder).absolute().parents if place.exists()), os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if held is not None:
            os.close(held)  # which releases it


def _sync(path):
    """Wait until a file, or the entries of a folder, are on disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot sync folders
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def check_path(name: str, value) -> Path:
    """Return the path given as an argument; raise an error if it is not a path."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise WrongTypeError(f"{name}={shown(value)} is not a path. Give the name of a folder.")
    return Path(value)


def check_folder(name: str, value) -> Path:
    """Return the folder given as an argument; raise an error if it cannot be created or written to."""
    folder = check_path(name, value)
    if reason := why_not_writable(folder):
        raise ValueError(f"{name}={str(value)!r}: {reason}. Give a folder that can be created.")
    return folder


def why_not_writable(folder) -> str | None:
    """Return why a folder, which need not exist, cannot be written to, or None; nothing is created.

    Example:
        >>> why_not_writable("/dev/null/runs")
        '/dev/null is a file'
    """
    nearest = next(place for place in (Path(folder).absolute(), *Path(folder).absolute().parents) if place.exists())
    if not nearest.is_dir():
        return f"{nearest} is a file"
    return None if os.access(nearest, os.W_OK) else f"no permission to write to {nearest}"


def cache_folder() -> Path:
    """Return the folder for what can be had again: ``AEVB_CACHE``, or the cache folder of this system."""
    if named := os.environ.get("AEVB_CACHE"):
        return Path(named)
    from platformdirs import user_cache_path

    return user_cache_path("aevb", appauthor=False, opinion=False)


def digest(data: bytes, kind: str = "sha256") -> str:
    """Return a hash of some bytes in hexadecimal."""
    return hashlib.new(kind, data, usedforsecurity=False).hexdigest()


def sealed(document: dict[str, Any]) -> str:
    """Return a document as JSON with the SHA-256 of the rest of its text, as `sha256`.

    Numbers that JSON cannot represent raise an error.

    Example:
        >>> unsealed(sealed({"answer": 42}))
        {'answer': 42}
    """
    return _written({"sha256": digest(_written({"sha256": "", **document}).encode()), **document})


def unsealed(text: str) -> dict[str, Any]:
    """Return the document that :func:`sealed` wrote; nothing is parsed before the checksum has been verified.

    Raises:
        ValueError: The text has been changed, or was never sealed.
    """
    start, end = len(_SEAL), len(_SEAL) + 64
    if not text.startswith(_SEAL):
        raise ValueError("its contents have changed: it is damaged, or was edited by hand.")
    if digest((_SEAL + text[end:]).encode()) != text[start:end]:
        raise ValueError("its checksum is wrong: it is damaged, or was edited by hand.")
    document = parse_json(text)
    del document["sha256"]
    return document


def parse_json(text: str) -> Any:
    """Return the contents of a JSON text; unlike Python's own parser, reject ambiguous and oversized ones.

    Raises:
        ValueError: It is not JSON, a name appears twice in an object, a number is not finite, or it is nested too deep.

    Example:
        >>> parse_json('{"a": 1, "a": 2}')
        Traceback (most recent call last):
        ValueError: the name 'a' appears twice in one object.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise ValueError("it is nested too deep.") from None


def plain(value: Any) -> Any:
    """Convert NumPy numbers and sequences to JSON types, and NaN and infinity, which JSON cannot represent, to null."""
    import numpy as np  # not needed by `aevb --help`

    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"cannot be saved as JSON: {value!r}")


def _written(document):
    return json.dumps(document, indent=1, allow_nan=False)


def _unique(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the name {twice!r} appears twice in one object.")
    return found


def _finite(text):
    if not math.isfinite(value := float(text)):
        raise ValueError(f"the number {text[:20]} is not finite.")
    return value
