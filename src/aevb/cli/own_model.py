"""Your own networks on the command line: a Python file, of which the run keeps a copy."""

import runpy
import shutil
import traceback
from pathlib import Path
from typing import Any

from aevb.cli.console import InputError
from aevb.files import written_whole
from aevb.runs import OWN_MODEL

_PARTS = ("prior", "encoder", "decoder")
_EXPECTED = (
    "Expected a function model(data_dim, latent_dim) that returns a dictionary with some of "
    f"{', '.join(map(repr, _PARTS))}."
)


def own_parts(path: Path, data_dim: int, latent_dim: Any) -> dict[str, Any]:
    """Return the user's own prior, encoder and decoder, by name, from the function `model` of a Python file.

    Args:
        path: The file. Its code runs here, as that of any Python program.
        data_dim: Columns of the data.
        latent_dim: As given to the command.

    Raises:
        InputError: It cannot be read, does not run, or returns something else.
    """
    if not path.is_file():
        raise InputError(f"--model {path}: there is no such file. {_EXPECTED}")
    try:
        build = runpy.run_path(str(path)).get("model")
        found = build(data_dim, latent_dim) if callable(build) else None
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f"line {lines[-1]}: " if lines else ""
        raise InputError(f"--model {path}: {where}{type(error).__name__}: {error}") from error
    if build is None:
        raise InputError(f"--model {path}: it has no function `model`. {_EXPECTED}")
    if not isinstance(found, dict) or not found or set(found) - set(_PARTS):
        what = f"a dictionary with {', '.join(map(repr, found))}" if isinstance(found, dict) else repr(found)
        raise InputError(f"--model {path}: `model` returned {what}. {_EXPECTED}")
    return found


def keep_copy(path: Path, folder: Path) -> None:
    """Copy the file into a run folder, so that the run can be read and resumed without it."""
    if path.resolve() != (folder / OWN_MODEL).resolve():
        with written_whole(folder / OWN_MODEL) as scratch:
            shutil.copyfile(path, scratch)
