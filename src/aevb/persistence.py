"""Model files: a folder with `model.json` and a file of arrays that it names. Nothing in them can run.

The JSON holds the arguments of `VAE`; loading builds the model from them as `fit` does, and then fills in the arrays by
name. Networks of the user's own are saved by their arrays, and handed to `load` again by the user's own code.

`model.json` carries its own SHA-256 and that of the arrays, for safetensors has none: a flipped bit would be a wrong
weight. It is also what makes a save whole: the arrays' file, whose name is part of its hash, is written first, then
`model.json` takes the place of the old one in a single step, and only then the old arrays go.
"""

import math
import numbers
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from aevb.arrays import filled, on_device
from aevb.files import check_path, digest, one_at_a_time, parse_json, plain, sealed, unsealed, written_whole
from aevb.models import LIKELIHOODS, OWN_PARTS, named_leaves, split

if TYPE_CHECKING:
    from aevb.vae import VAE

FORMAT = 2
MAX_DESCRIPTION = 2**25  # bytes of a model.json; a history of a hundred thousand epochs has about 22 million
_OUR_FILES = re.compile(r"\.?(model\.json|arrays(-[0-9a-f]{16})?\.safetensors)(\.\d+)?")


class ModelFileError(ValueError):
    """A model folder that cannot be read, with what is wrong and where."""


# ---- writing ---------------------------------------------------------------------------------------------------------


def save(vae: "VAE", folder) -> Path:
    """Write a fitted model to a folder; one that is there already is replaced only when the new one is complete.

    Args:
        vae: The model.
        folder: Where to; a folder that holds anything but a model is refused.

    Returns:
        The folder.

    Raises:
        ModelFileError: The folder holds something else.
        OSError: It could not be written; what was there before still is.
    """
    folder = Path(folder)
    data = safetensors.save(_named_arrays(vae))
    checksum = digest(data)
    arrays = {"file": f"arrays-{checksum[:16]}.safetensors", "sha256": checksum}
    text = sealed(_described(vae) | {"arrays": arrays})
    if len(text) > MAX_DESCRIPTION:  # and `load` would refuse it
        rows = len(vae.history_)
        raise ModelFileError(f"history_ has {rows:,} rows, too many for a file. Shorten it: del vae.history_[:-1000]")
    with one_at_a_time(folder):
        _write(folder, arrays["file"], data, text)
    return folder


def _write(folder, name, data, text):
    """Write arrays, then the description, then remove what was there before."""
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
    """Return those arguments of `VAE` that a file can hold, and which networks were the user's own."""
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
        "fitted": {name: getattr(vae, name) for name in _FITTED},
        "feature_names": list(getattr(vae, "feature_names_in_", [])),
    }
    return plain(description)


def _named_arrays(vae):
    """All arrays of a model by name: parameters, constants, and the optimizer's memory."""
    parameters, constants, _ = split(vae._networks())
    parts = {"parameters": parameters, "constants": constants, "optimizer": vae._optimizer_state}
    return {name: np.asarray(leaf) for name, leaf in named_leaves(parts)}


# ---- reading ---------------------------------------------------------------------------------------------------------


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
    """Say of whatever goes wrong inside that the folder is no model."""
    try:
        yield
    except KeyError as error:
        raise ModelFileError(f"{folder} cannot be read as a model: model.json lacks {error}.") from error
    except _DAMAGE as error:
        raise ModelFileError(f"{folder} cannot be read as a model: {error}") from error


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what the files hold, after their checksums were found right and all entries of the right kind."""
    text = _bytes(folder / "model.json", MAX_DESCRIPTION).decode()
    if text.startswith('{\n "format": 1,'):  # had no checksums
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
    if len(document["fitted"].get("offset_") or ()) not in (0, document["fitted"]["n_features_in_"]):
        raise ModelFileError("model.json: offset_ needs a number for each column.")
    if len(document["feature_names"]) not in (0, document["fitted"]["n_features_in_"]):
        raise ModelFileError(f"model.json: it names {len(document['feature_names'])} columns, and not all or none.")
    return document, safetensors.load(data)


def _bytes(path, most=math.inf):
    """Return what is in a file; a pipe would never end, and a device need not."""
    if not path.is_file():
        raise ModelFileError(f"{path.name} is not a file.")
    if path.stat().st_size > most:
        raise ModelFileError(f"{path.name} has {path.stat().st_size:,} bytes, more than any model's.")
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
    return is_named and value["file"] == f"arrays-{value['sha256'][:16]}.safetensors"  # so it cannot lead elsewhere


_FITTED: dict[str, Callable[[Any], bool]] = {
    "n_features_in_": lambda value: _is_whole(value) and value > 0,
    "likelihood_": lambda value: _is_text(value) and value in LIKELIHOODS,
    "likelihood_reason_": _is_text,
    "scale_": _is_number,
    "dispersion_": lambda value: _is_number(value) and 0 <= value <= 1,
    "offset_": lambda value: value is None or _are(_is_number, value),
    "seed_": lambda value: _is_whole(value) and value < 2**31,
    "learning_rate_": lambda value: value is None or _is_number(value),
    "stopped_because_": _is_text,
    "history_": _is_history,
}
# What older files lack, with what takes its place.
_SINCE_THEN = {"likelihood_reason_": "", "dispersion_": 1.0, "offset_": None}
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
        raise ModelFileError(f"model.json: {name} cannot be {str(value)[:60]}.")
    return value


def _check_own(own, optimizer, description):
    for name, network in own.items():
        if network is None and name in description["own_networks"]:
            raise ModelFileError(f"it was saved with a {name} of your own. Pass it: load(..., {name}=...).")
        if network is not None and name not in description["own_networks"]:
            raise ModelFileError(f"it was saved without a {name} of your own. Leave out {name}=...")
    if optimizer is not None and not description["own_optimizer"]:
        raise ModelFileError("it was saved without an optimizer of your own. Leave out optimizer=...")


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
    for name, value in (_SINCE_THEN | description["fitted"]).items():
        setattr(vae, name, value)
    if vae.offset_ is not None:
        vae.offset_ = np.asarray(vae.offset_, float)
    if description["own_optimizer"] and optimizer is None:
        vae.learning_rate_ = vae._initial_learning_rate()  # Adam's own; the saved one belongs to the other
    if description["feature_names"]:
        setattr(vae, "feature_names_in_", np.asarray(description["feature_names"], dtype=object))  # noqa: B010
    return vae


def _check_is_there(folder):
    if (folder / "model.json").exists():
        return
    place = f"{folder} (looked from {Path.cwd()})"
    if (folder / "model" / "model.json").exists():
        raise ModelFileError(f"{place} is the folder of a run; its model is in it: load({str(folder / 'model')!r}).")
    what = "has no model.json" if folder.is_dir() else "is a file" if folder.exists() else "does not exist"
    raise ModelFileError(f"{place} {what}. Give the folder that vae.save(folder) wrote, or a run's model/.")


def _fill(vae, arrays, with_optimizer):
    """Give a model its arrays, if each is of the form that the arguments ask for."""

    def start():
        zeros, ones = filled(vae.n_features_in_, 0), filled(vae.n_features_in_, 1)
        units = (zeros, ones) if LIKELIHOODS[vae.likelihood_].standardize else None
        models = vae._build_models(vae.n_features_in_, units, jax.random.key(0))
        learner, state = vae._start_learner(models, 1, jax.random.key(0))
        parts = {"parameters": state.parameters, "constants": state.constants}
        return learner, state, parts | ({"optimizer": state.optimizer_state} if with_optimizer else {})

    # Shapes first: arguments that ask for more than the file has must not get the memory, nor the time, for it.
    depth, names = len(vae._hidden_widths()), {name.rpartition(".network.")[2] for name in arrays}
    if vae.decoder is None and not names.issuperset(f"layers[{number}].weight" for number in range(depth + 1)):
        raise ModelFileError(f"the arguments ask for {depth} hidden layers, and it has others.")
    _check_forms(arrays, _forms(lambda: start()[2]))
    learner, state, parts = start()
    leaves = [on_device(arrays[name]) for name, _ in named_leaves(parts)]
    read = jax.tree.unflatten(jax.tree.structure(parts), leaves)
    state = state._replace(parameters=read["parameters"], constants=read["constants"])
    vae.generative_, vae.recognition_ = learner.models(state)
    vae._optimizer_state = read.get("optimizer")


def _forms(make_parts):
    """Return the shapes and types of arrays by name, without making any."""
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
        found, wanted = ((array.shape, str(array.dtype)) for array in (arrays[name], form))
        if found != wanted:
            raise ModelFileError(f"the arrays: {name} has shape and type {found}, expected {wanted}.")
        if not np.isfinite(arrays[name]).all():
            raise ModelFileError(f"the arrays: {name} holds what is no finite number.")
