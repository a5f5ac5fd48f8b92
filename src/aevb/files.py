"""Files that are there completely or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path) -> Iterator[Path]:
    """Give a path to write to; at the end of the block the file gets its name, and replaces one that has it.

    If the block fails, what was there stays.

    Args:
        path: Where the file shall be; its folder is made if need be.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "note.txt"
        >>> with written_whole(path) as scratch:
        ...     _ = scratch.write_text("hello")
        >>> path.read_text()
        'hello'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield scratch
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
