"""Where a run is saved, and by what it is recognized when it resumes."""

import json
import numbers

from aevb.parallel import group
from aevb.persistence import written_arguments
from aevb.settings import SETTINGS, Arguments
from aevb.settings.arguments import HIDDEN, LATENT_DIM
from aevb.training import Feed
from aevb.training.checkpoint import Checkpoints, network_fingerprint, newest_about, optimizer_fingerprint

# Since checkpoints were first written:
NEW_ARGUMENTS = (
    "network",
    "image_shape",
    "augment",
    "missing",
    "conditional",
    "kl_annealing",
    "hierarchy",
    "free_bits",
    "averaging",
)
FORMER_DEFAULTS = {"latent_dim": LATENT_DIM, "hidden": list(HIDDEN), "estimator": "sgvb-b"}  # of earlier versions
FORMER_NOTES = {"averaging": 0.0}


def notes_of(checkpoints: Checkpoints | None) -> dict:
    """Return the notes of the newest checkpoint, of a run that resumes."""
    if checkpoints is None:
        return {}
    return json.loads(group().from_first(lambda: json.dumps(_notes(newest_about(checkpoints.folder))).encode()))


def _notes(about):
    return {} if about is None else FORMER_NOTES | about.get("notes", {})


def resumed(arguments: Arguments, checkpoints: Checkpoints | None) -> Arguments:
    """Return the arguments of the run that resumes: one of an earlier version did not average its parameters."""
    arguments = arguments.replaced(averaging=notes_of(checkpoints).get("averaging", arguments.averaging))
    if checkpoints is not None:
        checkpoints.notes["averaging"] = arguments.averaging
    return arguments


def checkpoints_for(arguments: Arguments, feed: Feed, folder, every: float) -> Checkpoints | None:
    """Return where a run is saved, and by what it is recognized; None without a folder.

    Args:
        arguments: The arguments of the estimator; those that may differ when a run resumes are not compared.
        feed: The data, which have to be readable again.
        folder: The folder, or None.
        every: Seconds between two saves.
    """
    if folder is None:
        return None
    if (fingerprint := feed.fingerprint) is None:  # once: it reads all data
        raise ValueError("checkpoint: needs data that can be read again: an array or files. Leave it out.")
    if not isinstance(arguments.random_state, numbers.Integral):
        raise ValueError(f"checkpoint: needs an integer random_state, but {arguments.random_state!r} was given.")
    written, own_networks = written_arguments(arguments)
    for name in ("max_epochs", "progress"):
        del written[name]
    written |= {name: value for name, value in FORMER_DEFAULTS.items() if written[name] == SETTINGS[name].default}
    for name in NEW_ARGUMENTS:  # checkpoints of earlier versions do not have them
        if written[name] == SETTINGS[name].default:
            del written[name]
    own = {name: network_fingerprint(getattr(arguments, name)) for name in own_networks}
    if not isinstance(arguments.optimizer, str):
        own["optimizer"] = optimizer_fingerprint(arguments.optimizer)
    return Checkpoints(folder, {"arguments": written, "own parts": own, "data": fingerprint}, every)
