"""A run is a folder: `config.toml`, `checkpoints/`, `model/`, `history.csv`, `metrics.json`, `report.html`, pictures.

Each file is written atomically.
"""

import csv
import json
import math
import os
import platform
import subprocess
import tomllib
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

from aevb.files import written_whole

CHECKPOINTS = "checkpoints"  # the subfolder for checkpoints
OWN_MODEL = "model.py"  # the copy of the user's own networks
TABLES = ("run", "data", "model")  # of a `config.toml`
_PACKAGES = ("aevb", "equinox", "jax", "numpy", "numpyro", "optax", "scikit-learn")


def new_run_folder(folder) -> Path:
    """Create a folder for a run and return it: this one if it is new or empty, else the next free one of -2, -3, ...

    Earlier runs are never touched. The new folder contains an empty `config.toml`, so that a run started at the same
    moment does not use it too.

    Raises:
        OSError: The folder cannot be created.

    Example:
        >>> import tempfile
        >>> parent = Path(tempfile.mkdtemp())
        >>> (parent / "demo").mkdir()
        >>> _ = (parent / "demo" / "metrics.json").write_text("{}")
        >>> new_run_folder(parent / "demo").name
        'demo-2'
    """
    folder = Path(folder)
    for number in count(1):
        candidate = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        try:
            candidate.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            if number == 1:
                raise
            continue  # a file has that name
        if not any(candidate.iterdir()):
            try:
                (candidate / "config.toml").open("x").close()
                return candidate
            except FileExistsError:
                pass
    raise AssertionError("There is always a next number.")


def write_config(folder: Path, config: dict[str, dict[str, Any]]) -> None:
    """Write `config.toml`, one table per entry. None is left out, because TOML cannot represent it."""
    import tomli_w

    given = {
        table: {name: value for name, value in values.items() if value is not None} for table, values in config.items()
    }
    with written_whole(folder / "config.toml") as scratch:
        scratch.write_text(tomli_w.dumps(given), encoding="utf-8")


def read_config(path: Path) -> dict[str, dict[str, Any]]:
    """Return the tables of a `config.toml`.

    Raises:
        ValueError: The file is missing or invalid; the message names the file and the place.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}.") from error
    for name, table in tables.items():
        if name not in TABLES or not isinstance(table, dict):
            given = f"[{name}]" if isinstance(table, dict) else f"{name} = {table!r}"
            raise ValueError(f"{path}: {given} is not known. It may contain the tables {', '.join(TABLES)}.")
    return tables


def write_history(folder: Path, history: list[dict]) -> None:
    """Write `history.csv`, one row per epoch, or per several epochs of small data; it need not have every column."""
    columns = list(dict.fromkeys(name for row in history for name in row)) or ["epoch"]
    with (
        written_whole(folder / "history.csv") as scratch,
        open(scratch, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(history)


def write_metrics(folder: Path, metrics: dict) -> None:
    """Write `metrics.json`, with the package versions, the commit and the machine added."""
    provenance = {"versions": versions(), "commit": commit(), "machine": machine()}
    with written_whole(folder / "metrics.json") as scratch:
        scratch.write_text(json.dumps(_finite({**metrics, **provenance}), indent=2) + "\n", encoding="utf-8")


def _finite(value):
    """Return a value with null in place of NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on."""
    return {"python": platform.python_version(), **{package: version(package) for package in _PACKAGES}}


def machine() -> dict[str, Any]:
    """Return a description of this machine."""
    return {"system": platform.system(), "architecture": platform.machine(), "cores": os.cpu_count()}


def commit() -> str | None:
    """Return the commit of this source tree, with -dirty if files differ from it; None for an installed package."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
