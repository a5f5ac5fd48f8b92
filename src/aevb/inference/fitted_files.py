"""A fitted posterior as a folder: JSON and safetensors, without code."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from aevb.files import written_whole
from aevb.inference.approximation import Approximation
from aevb.models import POSTERIOR_FAMILIES, Posterior

FORMAT = 1
_FACTS = ("lower_bound", "std_error", "k_hat", "history", "stopped_because", "seed", "warnings", "family", "converged_")
_TREES = {"draws": "draws", "effective": "effective_sample_size"}  # arrays, or dictionaries of them


def save_fitted(fitted: Any, folder: str | Path) -> None:
    """Write draws, weights and diagnostics of a fitted posterior, and q if it is of a named family."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    details = fitted.details
    trees = {name: getattr(fitted, attribute) for name, attribute in _TREES.items()}
    trees |= {"proposals": details.proposals, "r_hat": details.r_hat}
    arrays = {"log_weights": np.asarray(fitted.log_weights)}
    arrays |= {name: np.asarray(getattr(details, name)) for name in ("weights", "index") if _has(details, name)}
    for name, tree in trees.items():
        parts = tree if isinstance(tree, dict) else {} if tree is None else {"": tree}
        arrays |= {f"{name}/{part}": np.ascontiguousarray(value) for part, value in parts.items()}
    facts = {name: getattr(fitted, name) for name in _FACTS}
    facts |= {"format": FORMAT, "tried": list(fitted.tried), "num_chains": details.num_chains}
    facts |= {"is_final": details.is_final, "order": list(fitted.draws) if isinstance(fitted.draws, dict) else None}
    q = _without_model(fitted.posterior)
    written = None if q is None else q.written()
    facts["q"], of_q = (None, {}) if written is None else written
    arrays |= {f"q/{name}": np.ascontiguousarray(value) for name, value in of_q.items()}
    with written_whole(folder / "draws.safetensors") as scratch:
        save_file(arrays, str(scratch))
    with written_whole(folder / "posterior.json") as scratch:
        scratch.write_text(json.dumps(facts, indent=1, default=_plain), encoding="utf-8")


def load_fitted(folder: str | Path) -> dict[str, Any]:
    """Return what a folder contains, by the names of fields.

    Raises:
        FileNotFoundError: It has no saved posterior.
        ValueError: Its format is unknown.
    """
    path = Path(folder) / "posterior.json"
    if not path.exists():
        raise FileNotFoundError(f"{folder}: contains no fitted posterior; expected posterior.json in it.")
    facts = json.loads(path.read_text(encoding="utf-8"))
    if facts["format"] != FORMAT:
        raise ValueError(f"{path}: has format {facts['format']}, but this version reads format {FORMAT}. Update aevb.")
    arrays = load_file(Path(folder) / "draws.safetensors")
    order = facts.pop("order")

    def parts(name):
        return {key.partition("/")[2]: value for key, value in arrays.items() if key.startswith(f"{name}/")}

    def tree(name):
        found = parts(name)
        if not found:
            return None
        return found[""] if set(found) == {""} else {part: found[part] for part in order}

    details = {name: arrays.get(name) for name in ("weights", "index")}
    details |= {name: tree(name) for name in ("proposals", "r_hat")}
    details |= {name: facts.pop(name) for name in ("num_chains", "is_final")}
    facts |= {attribute: tree(name) for name, attribute in _TREES.items()}
    q = facts.pop("q", None)
    facts |= {"log_weights": arrays["log_weights"], "details": details}
    facts |= {"posterior": None if q is None else Approximation.read(q, parts("q"))}
    facts |= {"warnings": tuple(facts["warnings"]), "tried": tuple(facts["tried"])}
    del facts["format"]
    return facts


def _without_model(q):
    """Return q as an approximation that can be written; None for the user's own distributions."""
    if isinstance(q, Posterior) and q.variables is not None:
        names = [name for name, family in POSTERIOR_FAMILIES.items() if type(q.parts) is family]
        return Approximation.of_module(q.variables, names[0], q.parts, precise=False) if names else None
    return q if isinstance(q, Approximation) else None


def _has(details, name):
    return getattr(details, name) is not None


def _plain(value):
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)
