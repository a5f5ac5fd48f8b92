"""Compiled programs are kept for later commands, in the user's cache folder."""

import hashlib
import os
import platform
from contextlib import suppress

from aevb.files import cache_folder, why_not_writable

MAX_BYTES = 500_000_000  # the programs used longest ago are deleted
MIN_SECONDS = 0.1  # what compiles faster is not kept


def keep_programs() -> None:
    """Let JAX keep compiled programs, unless ``JAX_COMPILATION_CACHE_DIR`` says where, or is empty; before its import.

    With a limit on their size JAX locks the folder, so that several processes can share it. Programs for another
    processor may not run, and home folders are shared by different machines: each kind of processor has its own folder.
    JAX makes it when it compiles.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    folder = cache_folder() / "programs" / _processor()
    if why_not_writable(folder):
        return  # they are compiled again
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ.setdefault("JAX_COMPILATION_CACHE_MAX_SIZE", str(MAX_BYTES))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", str(MIN_SECONDS))


def _processor():
    """Return a name for the kind of processor, the same wherever it has the same instructions."""
    known = f"{platform.system()} {platform.machine()} {platform.processor()}"
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        known += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(known.encode()).hexdigest()[:16]
