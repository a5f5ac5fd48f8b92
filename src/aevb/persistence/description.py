"""What `model.json` says of a model, and which values of its entries are valid."""

import math
import numbers
import sys
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from aevb.data.frames import TableFormat
from aevb.data.sequence_format import SequenceFormat
from aevb.files import plain
from aevb.fitted import FittedModel
from aevb.models import LIKELIHOODS, PRIORS, MatrixFormat, TreeFormat
from aevb.settings import MAX_WIDTH, OWN_PARTS, Arguments

FORMATS: dict[str, Any] = {
    "matrix": MatrixFormat,
    "tree": TreeFormat,
    "table": TableFormat,
    "sequences": SequenceFormat,
}
FEATURES = "VAE"  # the estimator whose codes another one may learn from
FORMAT = 3  # from which the conversion of data has an entry of its own


class ModelFileError(ValueError):
    """A model folder cannot be read or written; the message says what is wrong and where."""


def written_arguments(arguments: Arguments) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments that can be written to a file, and which networks are user-defined."""
    written = {
        name: value for name, value in vars(arguments).items() if name not in OWN_PARTS or isinstance(value, str)
    }
    if not isinstance(arguments.optimizer, str):
        written["optimizer"] = None
    if not isinstance(arguments.random_state, numbers.Integral):
        written["random_state"] = None
    return plain(written), arguments.own_parts


def describe(model: FittedModel, estimator: str) -> dict[str, Any]:
    """Return the document of a model, except for its arrays.

    Args:
        model: The model.
        estimator: The name of the estimator class; ``"structure"`` for a model that the user builds.
    """
    arguments, own_networks = written_arguments(model.arguments)
    record = model.record
    fitted = {
        "likelihood_": model.likelihood,
        "latent_dim_": model.latent_dim,
        "dispersion_": model.dispersion,
        "seed_": model.seed,
        "latent_dim_search_": record.latent_dim_search,
        "likelihood_reason_": record.likelihood_reason,
        "learning_rate_": record.learning_rate,
        "stopped_because_": record.stopped_because,
        "history_": record.history,
        "refit_epochs_": record.refit_epochs,
    }
    if (form := model.prior_form) is not None:
        fitted["prior_"] = form._asdict()
    document = {
        "format": FORMAT,
        "estimator": estimator,
        "arguments": arguments,
        "own_networks": own_networks,
        "own_optimizer": not isinstance(model.arguments.optimizer, str),
        "conversion": model.format.describe(),
        "fitted": fitted,
    }
    if model.given is not None:
        document["given"] = model.given.describe()
    if model.features is not None:
        document["features"] = describe(model.features, FEATURES)
        document["codes"] = model.codes
    return plain(document)


def checked_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document in the newest format, after checking the types of its entries."""
    if document["format"] < FORMAT:
        document = _upgraded(document)
    for name in ("estimator", "arguments", "own_networks", "own_optimizer", "conversion", "fitted"):
        checked(name, document[name])
    if "given" in document:
        checked("given", document["given"])
    for name, value in document["fitted"].items():
        checked(name, value)
    if "features" in document:
        checked("features", document["features"])
        document = document | {"features": checked_document(document["features"])}
        checked("codes", document.get("codes"))
    return document


def _upgraded(document):
    """Return a document of format 1 or 2 in the newest one."""
    fitted = deepcopy(_SINCE_THEN) | checked("fitted", document["fitted"], dict)
    for name in ("n_features_in_", "scale_", "offset_", "_learned_from_a_frame"):
        checked(name, fitted[name])
    columns = checked("feature_names", document["feature_names"])
    conversion = {"kind": "matrix", "num_columns": fitted.pop("n_features_in_"), "columns": columns or None}
    conversion |= {"scale": fitted.pop("scale_"), "offset": fitted.pop("offset_")}
    conversion["from_frame"] = fitted.pop("_learned_from_a_frame")
    if fitted["latent_dim_"] is None:
        fitted["latent_dim_"] = checked("arguments", document["arguments"])["latent_dim"]
    return document | {"estimator": "VAE", "conversion": conversion, "fitted": fitted}


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


def _is_conversion(value):
    if not isinstance(value, dict) or value.get("kind") not in FORMATS:
        return False
    return value["kind"] != "matrix" or _is_matrix(value)


def _is_matrix(value):
    known = {"kind", "num_columns", "columns", "scale", "offset", "from_frame"}
    images = {"image_shape", "from_images"}
    if set(value) not in (known, known | images) or not _is_whole(value["num_columns"]):
        return False
    if images <= set(value) and not _is_image_shape(value):
        return False
    size, columns, offset = value["num_columns"], value["columns"], value["offset"]
    are_named = columns is None or (_are(_is_text, columns) and len(columns) == size)
    are_shifted = offset is None or (_are(_is_number, offset) and len(offset) == size)
    is_plain = _is_number(value["scale"]) and isinstance(value["from_frame"], bool)
    return size > 0 and are_named and are_shifted and is_plain


def _is_image_shape(value):
    shape = value["image_shape"]
    is_shape = _are(_is_whole, shape) and len(shape) in (2, 3) and math.prod(shape) == value["num_columns"]
    return is_shape and isinstance(value["from_images"], bool)


def _is_prior(value):
    if not isinstance(value, dict) or set(value) != {"name", "size"}:
        return False
    return value["name"] in PRIORS and _is_whole(value["size"]) and 0 < value["size"] <= MAX_WIDTH


_FITTED: dict[str, Callable[[Any], bool]] = {
    "latent_dim_": lambda value: _is_whole(value) and 0 < value <= MAX_WIDTH,
    "latent_dim_search_": _is_history,
    "likelihood_": lambda value: _is_text(value) and value in LIKELIHOODS,
    "likelihood_reason_": _is_text,
    "dispersion_": lambda value: _is_number(value) and 0 <= value <= 1,
    "seed_": lambda value: _is_whole(value) and value < 2**31,
    "learning_rate_": lambda value: value is None or _is_number(value),
    "stopped_because_": _is_text,
    "history_": _is_history,
    "refit_epochs_": lambda value: value is None or _is_whole(value),
    "prior_": _is_prior,  # only for learned priors by name
}
# Entries that files of format 1 or 2 may lack, with their defaults.
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
    "estimator": _is_text,
    "arguments": lambda value: isinstance(value, dict),
    "own_networks": lambda value: _are(lambda name: name in OWN_PARTS, value),
    "own_optimizer": lambda value: isinstance(value, bool),
    "conversion": _is_conversion,
    "given": lambda value: _is_conversion(value) and value["kind"] == "table",
    "features": lambda value: isinstance(value, dict) and value.get("format") == FORMAT and "features" not in value,
    "codes": lambda value: value is None or _are(_is_whole, value),
    "fitted": lambda value: isinstance(value, dict) and set(_FITTED) - {"prior_"} <= set(value) <= set(_FITTED),
    "arrays": _is_arrays,
    # Of formats 1 and 2:
    "feature_names": lambda value: _are(_is_text, value),
    "n_features_in_": lambda value: _is_whole(value) and value > 0,
    "scale_": _is_number,
    "offset_": lambda value: value is None or _are(_is_number, value),
    "_learned_from_a_frame": lambda value: isinstance(value, bool),
}


def checked(name: str, value: Any, kind: type | None = None) -> Any:
    """Return the value of an entry; refuse one that is not valid there.

    Args:
        name: The name of the entry.
        value: Its value.
        kind: The type that it needs; None for the check that belongs to the name.
    """
    is_valid = (isinstance(value, kind)) if kind else name in _KINDS and _KINDS[name](value)
    if not is_valid:
        raise ModelFileError(f"model.json: {name} has an invalid value, {str(value)[:60]}.")
    return value
