"""Compiled programs are kept for later processes, in the user's cache folder."""

import hashlib
import os
import platform
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from aevb.files import cache_folder, why_not_writable

FOLDER, LIMIT = "jax_compilation_cache_dir", "jax_compilation_cache_max_size"
# JAX's settings, and what they are unless the user chooses: JAX's own values, then ours.
SETTINGS = {
    # In bytes; the programs used longest ago are deleted. JAX looks at all of them before it writes another: with
    # thousands, that takes longer than compiling a small one.
    LIMIT: (-1, 100_000_000),
    "jax_persistent_cache_min_compile_time_secs": (1.0, 0.02),  # what compiles faster is not kept
}


@cache  # a process asks the file system once
def keep_programs() -> None:
    """Let JAX keep compiled programs, unless the user has named a folder or, by an empty name, none.

    It is called before the first program is compiled, by commands before JAX is imported. With a limit on their size
    JAX locks the folder, so that several processes can share it. Programs for another processor may not run, and home
    folders are shared by different machines: each kind of processor has its own folder. JAX makes it when it compiles.
    """
    if FOLDER.upper() in os.environ or _setting(FOLDER) is not None:
        return
    with suppress(OSError, RuntimeError):  # there may be no home folder
        folder = cache_folder() / "programs" / _processor()
        if why_not_writable(folder):
            return  # they are compiled again
        if os.environ.get(LIMIT.upper()) != "-1":  # without a limit JAX neither notes times of use nor locks
            _remove_unfinished(folder)
        _set(FOLDER, str(folder))
        for name, (default, value) in SETTINGS.items():
            if name.upper() not in os.environ and _setting(name) in (None, default):
                _set(name, value)


def _setting(name):
    """Return a setting of JAX; None before its import."""
    return getattr(sys.modules["jax"].config, name) if "jax" in sys.modules else None


def _set(name, value):
    """Set a setting of JAX; before its import, the variable that it reads."""
    if "jax" in sys.modules:
        sys.modules["jax"].config.update(name, value)
    else:
        os.environ[name.upper()] = str(value)


def _remove_unfinished(folder: Path) -> None:
    """Remove programs whose writing was interrupted: JAX never replaces them, and warns each time.

    It writes when each was used after the program itself, and holds this lock meanwhile.
    """
    if not (names := {path.name for path in folder.glob("*-*")}):
        return
    unfinished = [name for name in names if name.endswith("-cache") and f"{name[:-6]}-atime" not in names]
    if not unfinished:
        return
    from filelock import FileLock, Timeout

    with suppress(Timeout), FileLock(folder / ".lockfile", timeout=1):
        for name in unfinished:
            if not (folder / f"{name[:-6]}-atime").exists():
                (folder / name).unlink(missing_ok=True)


def _processor():
    """Return a name for the kind of processor, the same wherever it has the same instructions."""
    known = f"{platform.system()} {platform.machine()} {platform.processor()}"
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        known += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(known.encode()).hexdigest()[:16]
