"""The state of a learner in one file, written atomically and with a checksum."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.dtypes import canonicalize_dtype
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from aevb.arrays import checksum, on_device
from aevb.files import parse_json, written_whole
from aevb.models.parameters import named_leaves


class CheckpointError(ValueError):
    """A file contains no state, a damaged one, or one of another learner."""


def write_state(path, state, about: dict[str, Any]) -> None:
    """Write a pytree of arrays and its description, replacing an existing file.

    Args:
        path: Path of the file.
        state: The arrays.
        about: The description, which must be valid JSON.
    """
    arrays = {name: np.asarray(leaf) for name, leaf in named_leaves(state)}
    text = json.dumps(about, allow_nan=False)
    data = safetensors.save(arrays, metadata={"about": text, "sha256": _checksum(arrays, text)})
    with written_whole(path) as scratch:
        scratch.write_bytes(data)


def read_about(path) -> dict[str, Any]:
    """Return the description of the state in a file.

    Raises:
        CheckpointError: There is no such file, or it contains no state.
    """
    return parsed(bytes_of(path), path)[1]


def read_state(path, like):
    """Return the state in a file.

    Args:
        path: Path of the file.
        like: A state with the same structure, shapes and types; its values are ignored.

    Raises:
        CheckpointError: There is no such file, or its state has another structure.
    """
    return in_form_of(like, parsed(bytes_of(path), path)[0], path)


def in_form_of(like, arrays: dict[str, np.ndarray], path):
    """Return the arrays of a file as a pytree of the same structure as `like`; its shapes and types are compared."""
    leaves = []
    for name, leaf in named_leaves(like):
        array, dtype = arrays.get(name), canonicalize_dtype(leaf.dtype)  # NumPyro has constants in float64
        if array is None or array.shape != np.shape(leaf) or array.dtype != dtype:
            raise CheckpointError(
                f"{path} contains another learner's state: {name} is missing, or has another shape or type."
            )
        leaves.append(on_device(array))
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def parsed(data: bytes, path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays in the bytes of a file by name, and their description; its checksum is checked."""
    try:
        arrays = safetensors.load(data)
        size = int.from_bytes(data[:8], "little")
        metadata = parse_json(data[8 : 8 + size].decode())["__metadata__"]
        about, is_right = parse_json(metadata["about"]), metadata["sha256"] == _checksum(arrays, metadata["about"])
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise CheckpointError(f"{path} cannot be read as the state of a learner: {error}") from error
    if not is_right:
        raise CheckpointError(f"{path} is damaged: its checksum is wrong.")
    return arrays, about


def bytes_of(path) -> bytes:
    """Return the contents of a file.

    Raises:
        CheckpointError: There is no such file.
    """
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} does not exist.") from error
    except OSError as error:  # the file itself may be good
        error.add_note(f"The checkpoint {path} cannot be read at the moment; it was not changed.")
        raise


def _checksum(arrays, text):
    names = sorted(arrays)
    return checksum((arrays[name] for name in names), f"{names} {text}")
