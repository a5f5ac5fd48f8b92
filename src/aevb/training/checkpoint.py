"""The state of a learner on disk: one file, there whole or not at all."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from aevb.files import written_whole
from aevb.models.parameters import named_leaves


class CheckpointError(ValueError):
    """A file holds no state, or one of another learner."""


def write_state(path, state, about: dict[str, Any]) -> None:
    """Write a learner's state, and what is to be known about it, in place of what was there.

    Args:
        path: Where the file shall be.
        state: A pytree of arrays, see :class:`aevb.learners.LearnerState`.
        about: What JSON can hold.
    """
    arrays = {name: np.asarray(leaf) for name, leaf in named_leaves(state)}
    with written_whole(path) as scratch:
        save_file(arrays, scratch, metadata={"about": json.dumps(about)})


def read_about(path) -> dict[str, Any]:
    """Return what a file says about its state.

    Raises:
        CheckpointError: There is no such file, or it holds no state.
    """
    with _open(path) as file:
        return json.loads(file.metadata()["about"])


def read_state(path, like):
    """Return the state of a file.

    Args:
        path: Where the file is.
        like: A state of the same form; its numbers play no part.

    Raises:
        CheckpointError: There is no such file, or its state has another form.
    """
    with _open(path) as file:
        names = set(file.keys())
        leaves = []
        for name, leaf in named_leaves(like):
            array = file.get_tensor(name) if name in names else None
            if array is None or array.shape != leaf.shape or array.dtype != leaf.dtype:
                raise CheckpointError(f"{path} holds another learner's state: {name} is missing or of another shape.")
            leaves.append(jnp.asarray(array))
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def _open(path):
    try:
        return safe_open(Path(path), framework="numpy")
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path} cannot be read as the state of a learner: {error}") from error
