"""Model files: a folder with `model.json` and a file of arrays that it names. They contain no executable code.

The JSON contains the arguments of `VAE`; loading builds the model from them as `fit` does, and then fills in the arrays
by name. Of user-defined networks, only the arrays are saved; the user passes the networks to `load` again.

`model.json` contains its own SHA-256 and that of the arrays, because safetensors has no checksum: a flipped bit would
be a wrong weight. It also makes saving atomic: the file of arrays, named after its hash, is written first, then
`model.json` replaces the old one in a single step, and only then are the old arrays deleted.
"""

import math
import numbers
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from aevb.arrays import filled, on_device
from aevb.files import check_path, digest, one_at_a_time, parse_json, plain, sealed, unsealed, written_whole
from aevb.models import LIKELIHOODS, OWN_PARTS, named_leaves, split
from aevb.settings import MAX_WIDTH

if TYPE_CHECKING:
    from aevb.vae import VAE

FORMAT = 2
MAX_DESCRIPTION = 2**25  # bytes of a model.json; a history of a hundred thousand epochs takes about 22 million
_OUR_FILES = re.compile(r"\.?(model\.json|arrays(-[0-9a-f]{16})?\.safetensors)(\.\d+)?")


class ModelFileError(ValueError):
    """A model folder cannot be read or written; the message says what is wrong and where."""


# ---- writing ---------------------------------------------------------------------------------------------------------


def save(vae: "VAE", folder) -> Path:
    """Write a fitted model to a folder; an existing one is replaced only when the new one is complete.

    Args:
        vae: The model.
        folder: Where to write it; a folder that contains anything but a model is refused.

    Returns:
        The folder.

    Raises:
        ModelFileError: The folder contains something else.
        OSError: The model could not be written; an existing one is unchanged.
    """
    folder = Path(folder)
    data = safetensors.save(_named_arrays(vae))
    checksum = digest(data)
    arrays = {"file": f"arrays-{checksum[:16]}.safetensors", "sha256": checksum}
    text = sealed(_described(vae) | {"arrays": arrays})
    if len(text) > MAX_DESCRIPTION:  # `load` would refuse it
        rows = len(vae.history_)
        raise ModelFileError(f"history_ has {rows:,} rows, too many for a file. Shorten it: del vae.history_[:-1000]")
    with one_at_a_time(folder):
        _write(folder, arrays["file"], data, text)
    return folder


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


def written_arguments(vae) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments of `VAE` that can be written to a file, and which networks are user-defined."""
    arguments = vae.get_params(deep=False)
    own_networks = [name for name in OWN_PARTS if arguments.pop(name) is not None]
    if not isinstance(vae.optimizer, str):
        arguments["optimizer"] = None
    if not isinstance(vae.random_state, numbers.Integral):
        arguments["random_state"] = None
    return plain(arguments), own_networks


def _described(vae):
    arguments, own_networks = written_arguments(vae)
    description = {
        "format": FORMAT,
        "arguments": arguments,
        "own_networks": own_networks,
        "own_optimizer": not isinstance(vae.optimizer, str),
        "fitted": {name: getattr(vae, name, _SINCE_THEN.get(name)) for name in _FITTED},
        "feature_names": list(getattr(vae, "feature_names_in_", [])),
    }
    return plain(description)


def _named_arrays(vae):
    """Return all arrays of a model by name: parameters, constants, and the optimizer's state."""
    parameters, constants, _ = split(vae._networks())
    parts = {"parameters": parameters, "constants": constants, "optimizer": vae._optimizer_state}
    return {name: np.asarray(leaf) for name, leaf in named_leaves(parts)}


# ---- reading ---------------------------------------------------------------------------------------------------------


def load(folder, *, prior=None, encoder=None, decoder=None, optimizer=None) -> "VAE":
    """Read a model that :meth:`aevb.VAE.save` wrote.

    Args:
        folder: The model's folder.
        prior: Your own prior, if the model was created with one; its arrays are replaced by the saved ones.
        encoder: Your own encoder, likewise.
        decoder: Your own decoder, likewise.
        optimizer: Your own optax transformation, if the model was created with one and training continues.

    Returns:
        The fitted model.

    Raises:
        ModelFileError: The folder is not a model, is damaged, or has a newer format.
    """
    folder = _checked_path(folder)
    _check_is_there(folder)
    own = {"prior": prior, "encoder": encoder, "decoder": decoder}
    with _blaming(folder):
        description, arrays = _read(folder)
        _check_own(own, optimizer, description)
        vae = _unfitted(description, own, optimizer)
        _fill(vae, arrays, with_optimizer=not description["own_optimizer"] or optimizer is not None)
        return vae


def _checked_path(folder):
    try:
        return check_path("folder", folder)
    except ValueError as error:
        raise ModelFileError(str(error)) from None


_DAMAGE = OSError, ValueError, TypeError, AttributeError, OverflowError, MemoryError, RecursionError, SafetensorError


@contextmanager
def _blaming(folder):
    """Turn any error inside into one that says that the folder cannot be read as a model."""
    try:
        yield
    except KeyError as error:
        raise ModelFileError(f"{folder} cannot be read as a model: model.json lacks {error}.") from error
    except _DAMAGE as error:
        raise ModelFileError(f"{folder} cannot be read as a model: {error}") from error


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the contents of the files, after checking their checksums and the types of all entries."""
    text = _bytes(folder / "model.json", MAX_DESCRIPTION).decode()
    if text.startswith('{\n "format": 1,'):  # without checksums
        document, data = parse_json(text), _bytes(folder / "arrays.safetensors")
    else:
        document = unsealed(text)
        if document["format"] != FORMAT:
            raise ModelFileError(f"it has format {document['format']!r}; this version reads formats 1 to {FORMAT}.")
        arrays = _checked("arrays", document["arrays"])
        data = _bytes(folder / arrays["file"])
        if digest(data) != arrays["sha256"]:
            raise ModelFileError(f"{arrays['file']} is damaged: its checksum is not the one in model.json.")
    for name in ("arguments", "own_networks", "own_optimizer", "fitted", "feature_names"):
        _checked(name, document[name])
    for name, value in document["fitted"].items():
        _checked(name, value)
    offset = document["fitted"].get("offset_")
    if offset is not None and len(offset) != document["fitted"]["n_features_in_"]:
        raise ModelFileError("model.json: offset_ needs one number per column.")
    if len(document["feature_names"]) not in (0, document["fitted"]["n_features_in_"]):
        found, expected = len(document["feature_names"]), document["fitted"]["n_features_in_"]
        raise ModelFileError(f"model.json: it names {found} columns, expected all {expected} or none.")
    return document, safetensors.load(data)


def _bytes(path, most=math.inf):
    """Return the contents of a regular file; reading a pipe or a device might never end."""
    if not path.is_file():
        raise ModelFileError(f"{path.name} is not a file.")
    if path.stat().st_size > most:
        raise ModelFileError(f"{path.name} has {path.stat().st_size:,} bytes, more than any model.json.")
    return path.read_bytes()


def _is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _are(kind, value):
    return isinstance(value, list) and all(kind(item) for item in value)


def _is_text(value):
    return isinstance(value, str)


def _is_history(value):
    def is_row(row):
        return isinstance(row, dict) and all(item is None or _is_number(item) for item in row.values())

    return _are(is_row, value)


def _is_arrays(value):
    is_named = isinstance(value, dict) and set(value) == {"file", "sha256"} and all(map(_is_text, value.values()))
    return is_named and value["file"] == f"arrays-{value['sha256'][:16]}.safetensors"  # it cannot point elsewhere


_FITTED: dict[str, Callable[[Any], bool]] = {
    "n_features_in_": lambda value: _is_whole(value) and value > 0,
    "latent_dim_": lambda value: _is_whole(value) and 0 < value <= MAX_WIDTH,
    "latent_dim_search_": _is_history,
    "likelihood_": lambda value: _is_text(value) and value in LIKELIHOODS,
    "likelihood_reason_": _is_text,
    "scale_": _is_number,
    "dispersion_": lambda value: _is_number(value) and 0 <= value <= 1,
    "offset_": lambda value: value is None or _are(_is_number, value),
    "seed_": lambda value: _is_whole(value) and value < 2**31,
    "learning_rate_": lambda value: value is None or _is_number(value),
    "stopped_because_": _is_text,
    "history_": _is_history,
    "refit_epochs_": lambda value: value is None or _is_whole(value),
    "_learned_from_a_frame": lambda value: isinstance(value, bool),  # plain arrays are warned about then
}
# Entries that older files lack, with their defaults.
_SINCE_THEN = {
    "latent_dim_": None,  # as given
    "latent_dim_search_": [],
    "likelihood_reason_": "",
    "dispersion_": 1.0,
    "offset_": None,
    "refit_epochs_": None,
    "_learned_from_a_frame": False,
}
_KINDS: dict[str, Callable[[Any], bool]] = _FITTED | {
    "arguments": lambda value: isinstance(value, dict),
    "own_networks": lambda value: _are(lambda name: name in OWN_PARTS, value),
    "own_optimizer": lambda value: isinstance(value, bool),
    "fitted": lambda value: isinstance(value, dict) and set(value) | set(_SINCE_THEN) == set(_FITTED),
    "feature_names": lambda value: _are(_is_text, value),
    "arrays": _is_arrays,
}


def _checked(name, value):
    if name not in _KINDS or not _KINDS[name](value):
        raise ModelFileError(f"model.json: {name} has an invalid value, {str(value)[:60]}.")
    return value


def _check_own(own, optimizer, description):
    for name, network in own.items():
        if network is None and name in description["own_networks"]:
            raise ModelFileError(f"it was saved with your own {name}. Pass it: load(..., {name}=...).")
        if network is not None and name not in description["own_networks"]:
            raise ModelFileError(f"it was saved with the standard {name}. Leave out {name}=...")
    if optimizer is not None and not description["own_optimizer"]:
        raise ModelFileError("it was saved with a named optimizer. Leave out optimizer=...")


def _unfitted(description, own, optimizer):
    """Return the model without its arrays."""
    from aevb.vae import VAE

    arguments = {**description["arguments"], **own}
    if isinstance(arguments["hidden"], list):
        arguments["hidden"] = tuple(arguments["hidden"])
    if description["own_optimizer"]:
        arguments["optimizer"] = optimizer or "adam"
    vae = VAE(**arguments)
    vae._check_parameters()
    for name, value in (deepcopy(_SINCE_THEN) | description["fitted"]).items():
        setattr(vae, name, value)
    if vae.latent_dim_ is None:
        vae.latent_dim_ = _checked("latent_dim_", vae.latent_dim)
    if vae.offset_ is not None:
        vae.offset_ = np.asarray(vae.offset_, float)
    if description["own_optimizer"] and optimizer is None:
        vae.learning_rate_ = vae._initial_learning_rate()  # Adam's; the saved one belongs to the other optimizer
    if description["feature_names"]:
        setattr(vae, "feature_names_in_", np.asarray(description["feature_names"], dtype=object))  # noqa: B010
    return vae


def _check_is_there(folder):
    if (folder / "model.json").exists():
        return
    place = f"{folder} (looked from {Path.cwd()})"
    if (folder / "model" / "model.json").exists():
        raise ModelFileError(f"{place} is a run folder; load the model inside it: load({str(folder / 'model')!r}).")
    what = "has no model.json" if folder.is_dir() else "is a file" if folder.exists() else "does not exist"
    raise ModelFileError(f"{place} {what}. Give the folder that vae.save(folder) wrote, or a run's model/.")


def _fill(vae, arrays, with_optimizer):
    """Fill in the arrays of a model, if their shapes and types match the arguments."""

    def start():
        zeros, ones = filled(vae.n_features_in_, 0), filled(vae.n_features_in_, 1)
        units = (zeros, ones) if LIKELIHOODS[vae.likelihood_].standardize else None
        models = vae._build_models(vae.n_features_in_, units, jax.random.key(0))
        learner, state = vae._start_learner(models, 1, jax.random.key(0))
        parts = {"parameters": state.parameters, "constants": state.constants}
        return learner, state, parts | ({"optimizer": state.optimizer_state} if with_optimizer else {})

    # Shapes first: arguments that describe more than the file contains must not take memory or time.
    depth, names = len(vae._hidden_widths()), {name.rpartition(".network.")[2] for name in arrays}
    if vae.decoder is None and not names.issuperset(f"layers[{number}].weight" for number in range(depth + 1)):
        raise ModelFileError(f"the arguments describe {depth} hidden layers, but the arrays have a different number.")
    _check_forms(arrays, _forms(lambda: start()[2]))
    learner, state, parts = start()
    leaves = [on_device(arrays[name]) for name, _ in named_leaves(parts)]
    read = jax.tree.unflatten(jax.tree.structure(parts), leaves)
    state = state._replace(parameters=read["parameters"], constants=read["constants"])
    vae.generative_, vae.recognition_ = learner.models(state)
    vae._optimizer_state = read.get("optimizer")


def _forms(make_parts):
    """Return the shapes and types of arrays by name, without creating them."""
    names = []

    def leaves():
        named = list(named_leaves(make_parts()))
        names.extend(name for name, _ in named)
        return [leaf for _, leaf in named]

    shapes = jax.eval_shape(leaves)
    return dict(zip(names, shapes, strict=True))


def _check_forms(arrays, forms):
    for name, form in forms.items():
        if name not in arrays:
            raise ModelFileError(f"the arrays lack {name}.")
        found, expected = ((array.shape, str(array.dtype)) for array in (arrays[name], form))
        if found != expected:
            raise ModelFileError(f"the arrays: {name} has shape and type {found}, expected {expected}.")
        if not np.isfinite(arrays[name]).all():
            raise ModelFileError(f"the arrays: {name} contains NaN or infinity.")
