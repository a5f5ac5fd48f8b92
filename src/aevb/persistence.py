"""Model files: a folder with `model.json` and `arrays.safetensors`. Nothing in them can run.

The JSON holds the arguments of `VAE`; loading builds the model from them as `fit` does, and then fills in the arrays by
name. Networks of the user's own are saved by their arrays, and handed to `load` again by the user's own code.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import Distribution
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from aevb.models import join, split

if TYPE_CHECKING:
    from aevb.vae import VAE

FORMAT = 1
_OWN_NETWORKS = ("prior", "encoder", "decoder")
_FITTED = ("n_features_in_", "likelihood_", "scale_", "seed_", "learning_rate_", "stopped_because_", "history_")


class ModelFileError(ValueError):
    """A model folder that cannot be read, with what is wrong and where."""


def save(vae: "VAE", folder) -> Path:
    """Write a fitted model to a folder; one that is there already is replaced only when the new one is complete."""
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()) and not (folder / "model.json").exists():
        raise ModelFileError(f"{folder} exists and is not a model folder. Nothing was written; choose another name.")
    arguments = vae.get_params(deep=False)
    own_networks = [name for name in _OWN_NETWORKS if arguments.pop(name) is not None]
    if not isinstance(vae.optimizer, str):
        arguments["optimizer"] = None
    arguments["random_state"] = vae.random_state if isinstance(vae.random_state, int) else None
    description = {
        "format": FORMAT,
        "arguments": arguments,
        "own_networks": own_networks,
        "own_optimizer": not isinstance(vae.optimizer, str),
        "fitted": {name: getattr(vae, name) for name in _FITTED},
        "feature_names": list(getattr(vae, "feature_names_in_", [])),
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        save_file(_named_arrays(vae), scratch / "arrays.safetensors")
        (scratch / "model.json").write_text(json.dumps(description, indent=1, default=_plain))
        _replace(scratch, folder)
    finally:
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
    try:
        description = json.loads((folder / "model.json").read_text())
        arrays = load_file(folder / "arrays.safetensors")
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelFileError(f"{folder} cannot be read as a model: {error}") from error
    if description.get("format") != FORMAT:
        raise ModelFileError(f"{folder} has format {description.get('format')}; this version reads format {FORMAT}.")
    own = {"prior": prior, "encoder": encoder, "decoder": decoder}
    missing = [name for name in description["own_networks"] if own[name] is None]
    if missing:
        raise ModelFileError(f"{folder} was saved with networks of your own. Pass them: load(..., {missing[0]}=...).")
    arguments = {**description["arguments"], **own}
    arguments["hidden"] = tuple(arguments["hidden"])
    if description["own_optimizer"]:
        arguments["optimizer"] = optimizer or "adam"
    vae = VAE(**arguments)
    for name, value in description["fitted"].items():
        setattr(vae, name, value)
    if description["feature_names"]:
        vae.feature_names_in_ = np.asarray(description["feature_names"], dtype=object)
    _fill(vae, arrays, with_optimizer=not description["own_optimizer"] or optimizer is not None)
    return vae


def _named_arrays(vae):
    """All arrays of a model by name: parameters, constants, and the optimizer's memory."""
    parameters, constants, _ = split((vae.generative_, vae.recognition_))
    parts = {"parameters": parameters, "constants": constants, "optimizer": vae._optimizer_state}
    return {name: np.asarray(leaf) for name, leaf in _named_leaves(parts)}


def _named_leaves(node, name=""):
    """Yield the leaves of a pytree in its own order, each with a name that is the same in every process.

    NumPyro flattens a distribution's parameters in the order of a set of strings, another one in each process:
    by place, a loc could come back as a scale. They are named after their fields instead.
    """
    children, _ = jax.tree_util.tree_flatten_with_path(node, is_leaf=lambda child: child is not node)
    for path, child in children:
        if not path:
            yield name, child
        elif isinstance(node, Distribution):
            yield from _named_leaves(child, f"{name}.{node.gather_pytree_data_fields()[path[0].key]}")
        else:
            yield from _named_leaves(child, name + jax.tree_util.keystr(path))


def _fill(vae, arrays, with_optimizer):
    units = (np.zeros(vae.n_features_in_, np.float32), np.ones(vae.n_features_in_, np.float32))
    is_gaussian = vae.likelihood_ == "gaussian"
    models = vae._build_models(vae.n_features_in_, units if is_gaussian else None, jax.random.key(0))
    learner, state = vae._start_learner(models, num_data=1)
    parts = {"parameters": state.parameters, "constants": state.constants}
    if with_optimizer:
        parts["optimizer"] = state.optimizer_state
    leaves = [_matching(arrays, name, leaf) for name, leaf in _named_leaves(parts)]
    filled = jax.tree.unflatten(jax.tree.structure(parts), leaves)
    vae.generative_, vae.recognition_ = join(filled["parameters"], filled["constants"], learner.skeleton)
    vae._optimizer_state = filled.get("optimizer")


def _matching(arrays, name, template):
    if name not in arrays:
        raise ModelFileError(f"arrays.safetensors lacks {name}.")
    if arrays[name].shape != template.shape:
        raise ModelFileError(f"arrays.safetensors: {name} has shape {arrays[name].shape}, expected {template.shape}.")
    return jnp.asarray(arrays[name])


def _replace(scratch, folder):
    """Put the finished folder in place; the old one is moved aside first and removed last."""
    if not folder.exists():
        os.rename(scratch, folder)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
    os.rename(folder, aside / "old")
    os.rename(scratch, folder)
    shutil.rmtree(aside)


def _plain(value):
    """Turn NumPy's numbers and sequences into JSON's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"cannot be saved as JSON: {value!r}")
