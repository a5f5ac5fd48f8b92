"""Model files: a folder with `model.json` and `arrays.safetensors`. Nothing in them can run.

The JSON holds the arguments of `VAE`; loading builds the model from them as `fit` does, and then fills in the arrays by
name. Networks of the user's own are saved by their arrays, and handed to `load` again by the user's own code.
"""

import json
import numbers
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from aevb.models import LIKELIHOODS, OWN_PARTS, named_leaves, split

if TYPE_CHECKING:
    from aevb.vae import VAE

FORMAT = 1
_FILES = ("model.json", "arrays.safetensors")
_FITTED = ("n_features_in_", "likelihood_", "scale_", "seed_", "learning_rate_", "stopped_because_", "history_")


class ModelFileError(ValueError):
    """A model folder that cannot be read, with what is wrong and where."""


def save(vae: "VAE", folder) -> Path:
    """Write a fitted model to a folder; one that is there already is replaced only when the new one is complete.

    Args:
        vae: The model.
        folder: Where to; a folder that holds anything but a model is refused.

    Returns:
        The folder.

    Raises:
        ModelFileError: The folder holds something else.
    """
    folder = Path(folder)
    if folder.exists() and not (folder.is_dir() and {path.name for path in folder.iterdir()} <= set(_FILES)):
        raise ModelFileError(f"{folder} exists and is not a model folder. Nothing was written; choose another name.")
    arguments = vae.get_params(deep=False)
    own_networks = [name for name in OWN_PARTS if arguments.pop(name) is not None]
    if not isinstance(vae.optimizer, str):
        arguments["optimizer"] = None
    if not isinstance(vae.random_state, numbers.Integral):
        arguments["random_state"] = None
    description = {
        "format": FORMAT,
        "arguments": arguments,
        "own_networks": own_networks,
        "own_optimizer": not isinstance(vae.optimizer, str),
        "fitted": {name: getattr(vae, name) for name in _FITTED},
        "feature_names": list(getattr(vae, "feature_names_in_", [])),
    }
    text = json.dumps(description, indent=1, default=_plain)
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    new, old = scratch / "new", scratch / "old"
    try:
        new.mkdir()
        save_file(_named_arrays(vae), new / "arrays.safetensors")
        (new / "model.json").write_text(text)
        _replace(folder, new, old)
    finally:
        if folder.exists() or not old.exists():
            shutil.rmtree(scratch, ignore_errors=True)
    return folder


def load(folder, *, prior=None, encoder=None, decoder=None, optimizer=None) -> "VAE":
    """Read a model that :meth:`aevb.VAE.save` wrote.

    Args:
        folder: The model's folder.
        prior: Your own prior, if the model was made with one; likewise
        encoder: and
        decoder: their arrays are replaced by the saved ones.
        optimizer: Your own optax transformation, if the model was made with one and is to learn further.

    Returns:
        The fitted model.

    Raises:
        ModelFileError: The folder is no model, is damaged, or is of a newer format.
    """
    from aevb.vae import VAE

    folder = Path(folder)
    _check_is_there(folder)
    own = {"prior": prior, "encoder": encoder, "decoder": decoder}
    try:
        description = json.loads((folder / "model.json").read_text())
        arrays = load_file(folder / "arrays.safetensors")
        if description["format"] != FORMAT:
            raise ModelFileError(f"it has format {description['format']!r}; this version reads format {FORMAT}.")
        _check_own(own, description["own_networks"])
        arguments = {**description["arguments"], **own}
        if isinstance(arguments["hidden"], list):
            arguments["hidden"] = tuple(arguments["hidden"])
        if description["own_optimizer"]:
            arguments["optimizer"] = optimizer or "adam"
        elif optimizer is not None:
            raise ModelFileError("it was saved without an optimizer of your own. Leave out optimizer=...")
        vae = VAE(**arguments)
        vae._check_parameters()
        for name in _FITTED:
            setattr(vae, name, description["fitted"][name])
        if description["own_optimizer"] and optimizer is None:
            vae.learning_rate_ = vae._initial_learning_rate()  # Adam's own; the saved one belongs to the other
        if description["feature_names"]:
            setattr(vae, "feature_names_in_", np.asarray(description["feature_names"], dtype=object))  # noqa: B010
        _fill(vae, arrays, with_optimizer=not description["own_optimizer"] or optimizer is not None)
    except KeyError as error:
        raise ModelFileError(f"{folder} cannot be read as a model: model.json lacks {error}.") from error
    except (OSError, ValueError, TypeError, AttributeError, SafetensorError) as error:
        raise ModelFileError(f"{folder} cannot be read as a model: {error}") from error
    return vae


def _check_is_there(folder):
    if (folder / "model.json").exists():
        return
    place = f"{folder} (looked from {Path.cwd()})"
    if (folder / "model" / "model.json").exists():
        raise ModelFileError(f"{place} is the folder of a run; its model is in it: load({str(folder / 'model')!r}).")
    what = "has no model.json" if folder.is_dir() else "is a file" if folder.exists() else "does not exist"
    raise ModelFileError(f"{place} {what}. Give the folder that vae.save(folder) wrote, or a run's model/.")


def _check_own(own, saved_names):
    for name, network in own.items():
        if network is None and name in saved_names:
            raise ModelFileError(f"it was saved with a {name} of your own. Pass it: load(..., {name}=...).")
        if network is not None and name not in saved_names:
            raise ModelFileError(f"it was saved without a {name} of your own. Leave out {name}=...")


def _named_arrays(vae):
    """All arrays of a model by name: parameters, constants, and the optimizer's memory."""
    parameters, constants, _ = split(vae._learned_models())
    parts = {"parameters": parameters, "constants": constants, "optimizer": vae._optimizer_state}
    return {name: np.asarray(leaf) for name, leaf in named_leaves(parts)}


def _fill(vae, arrays, with_optimizer):
    units = (np.zeros(vae.n_features_in_, np.float32), np.ones(vae.n_features_in_, np.float32))
    standardize = LIKELIHOODS[vae.likelihood_].standardize
    models = vae._build_models(vae.n_features_in_, units if standardize else None, jax.random.key(0))
    learner, state = vae._start_learner(models, 1, jax.random.key(0))
    parts = {"parameters": state.parameters, "constants": state.constants}
    if with_optimizer:
        parts["optimizer"] = state.optimizer_state
    leaves = [_matching(arrays, name, leaf) for name, leaf in named_leaves(parts)]
    filled = jax.tree.unflatten(jax.tree.structure(parts), leaves)
    state = state._replace(parameters=filled["parameters"], constants=filled["constants"])
    vae.generative_, vae.recognition_ = learner.models(state)
    vae._optimizer_state = filled.get("optimizer")


def _matching(arrays, name, template):
    if name not in arrays:
        raise ModelFileError(f"arrays.safetensors lacks {name}.")
    found, wanted = ((a.shape, str(a.dtype)) for a in (arrays[name], template))
    if found != wanted:
        raise ModelFileError(f"arrays.safetensors: {name} has shape and type {found}, expected {wanted}.")
    return jnp.asarray(arrays[name])


def _replace(folder, new, old):
    """Put the finished folder in place; the old one is moved aside first, and comes back if that fails."""
    if folder.exists():
        os.rename(folder, old)
    try:
        os.rename(new, folder)
    except BaseException:
        if old.exists():
            os.rename(old, folder)
        raise


def _plain(value):
    """Turn NumPy's numbers and sequences into JSON's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"cannot be saved as JSON: {value!r}")
