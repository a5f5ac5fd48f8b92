"""The folder of a model: written atomically, and read with its checksums checked."""

import math
import re
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from aevb.files import check_path, digest, one_at_a_time, parse_json, sealed, unsealed, written_whole
from aevb.persistence.description import FORMAT, ModelFileError, checked

MAX_DESCRIPTION = 2**25  # bytes of a model.json; a history of a hundred thousand epochs takes about 22 million
_OUR_FILES = re.compile(r"\.?(model\.json|arrays(-[0-9a-f]{16})?\.safetensors)(\.\d+)?")
_DAMAGE = OSError, ValueError, TypeError, AttributeError, OverflowError, MemoryError, RecursionError, SafetensorError


def write_folder(folder: Path, description: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a description and arrays; an existing model is replaced only when the new one is complete.

    Raises:
        ModelFileError: The folder contains something else, or the description is too long to be read again.
        OSError: It could not be written; an existing model is unchanged.
    """
    data = safetensors.save(arrays)
    checksum = digest(data)
    named = {"file": f"arrays-{checksum[:16]}.safetensors", "sha256": checksum}
    text = sealed(description | {"arrays": named})
    if len(text) > MAX_DESCRIPTION:  # it would be refused on loading
        rows = len(description["fitted"]["history_"])
        raise ModelFileError(f"history_ has {rows:,} rows, too many for a file. Shorten it: del vae.history_[:-1000]")
    with one_at_a_time(folder):
        _write(folder, named["file"], data, text)


def _write(folder, name, data, text):
    """Write the arrays, then the description, then delete the old files."""
    is_new = not folder.exists()
    if not is_new and not (folder.is_dir() and all(_OUR_FILES.fullmatch(path.name) for path in folder.iterdir())):
        raise ModelFileError(f"{folder} exists and is not a model folder. Nothing was written; choose another name.")
    before = [] if is_new else [path for path in folder.iterdir() if path.name not in (name, "model.json")]
    try:
        with written_whole(folder / name) as scratch:
            scratch.write_bytes(data)
        with written_whole(folder / "model.json") as scratch:
            scratch.write_text(text, encoding="utf-8")
    except BaseException:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    for path in before:
        path.unlink(missing_ok=True)


def read_folder(folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the document of a `model.json` and the arrays, after checking their checksums."""
    text = _bytes(folder / "model.json", MAX_DESCRIPTION).decode()
    if text.startswith('{\n "format": 1,'):  # without checksums
        return parse_json(text), safetensors.load(_bytes(folder / "arrays.safetensors"))
    document = unsealed(text)
    if document["format"] not in range(2, FORMAT + 1):
        raise ModelFileError(f"it has format {document['format']!r}; this version reads formats 1 to {FORMAT}.")
    arrays = checked("arrays", document["arrays"])
    data = _bytes(folder / arrays["file"])
    if digest(data) != arrays["sha256"]:
        raise ModelFileError(f"{arrays['file']} is damaged: its checksum is not the one in model.json.")
    return document, safetensors.load(data)


def _bytes(path, most=math.inf):
    """Return the contents of a regular file; reading a pipe or a device might never end."""
    if not path.is_file():
        raise ModelFileError(f"{path.name} is not a file.")
    if path.stat().st_size > most:
        raise ModelFileError(f"{path.name} has {path.stat().st_size:,} bytes, more than any model.json.")
    return path.read_bytes()


def checked_folder(folder) -> Path:
    """Return the path of a model's folder.

    Raises:
        ModelFileError: There is no model; the message says what is there instead.
    """
    try:
        folder = check_path("folder", folder)
    except ValueError as error:
        raise ModelFileError(str(error)) from None
    if (folder / "model.json").exists():
        return folder
    place = f"{folder} (looked from {Path.cwd()})"
    if (folder / "model" / "model.json").exists():
        raise ModelFileError(f"{place} is a run folder; load the model inside it: load({str(folder / 'model')!r}).")
    what = "has no model.json" if folder.is_dir() else "is a file" if folder.exists() else "does not exist"
    raise ModelFileError(f"{place} {what}. Give the folder that vae.save(folder) wrote, or a run's model/.")


@contextmanager
def blaming(folder):
    """Turn any error inside into one that says that the folder cannot be read as a model."""
    try:
        yield
    except KeyError as error:
        raise ModelFileError(f"{folder} cannot be read as a model: model.json lacks {error}.") from error
    except _DAMAGE as error:
        raise ModelFileError(f"{folder} cannot be read as a model: {error}") from error
