"""Save and load fitted models."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from aevb.arrays import filled, on_device
from aevb.fitted import FittedModel, TrainingRecord
from aevb.fitted.design import Design
from aevb.fitted.sequence_design import SequenceDesign
from aevb.fitted.steps import initial_learning_rate
from aevb.models import LIKELIHOODS, TABLE, PriorForm, join, named_leaves, split, untied
from aevb.persistence.description import FORMATS, ModelFileError, checked_document, describe
from aevb.persistence.folder import blaming, checked_folder, read_folder, write_folder
from aevb.settings import ESTIMATOR_SETTINGS, OWN_PARTS, SETTINGS, Arguments

DESIGNS = {"sequences": SequenceDesign}  # by the kind of their format; others have a `Design`
FEATURES = "features"  # before the names of arrays of a model of features
STRUCTURE = "structure"  # in place of an estimator's name: a model that the user builds


class Loaded(NamedTuple):
    """A model from its files."""

    estimator: str  # the name of the estimator class
    model: FittedModel
    optimizer_state: Any  # None if the optimizer was user-defined, and is not given


def save_model(model: FittedModel, folder, *, optimizer_state: Any = (), estimator: str = STRUCTURE) -> Path:
    """Write a model to a folder; an existing one is replaced only when the new one is complete.

    Args:
        model: The model.
        folder: Where to write it; a folder that contains anything but a model is refused.
        optimizer_state: Of the run, to continue training.
        estimator: The name of the estimator class that the model belongs to.

    Returns:
        The folder.

    Raises:
        ModelFileError: The folder contains something else.
        OSError: The model could not be written; an existing one is unchanged.
    """
    folder = Path(folder)
    arrays = _arrays(model, optimizer_state)
    if model.features is not None:
        arrays |= {FEATURES + name: array for name, array in _arrays(model.features, ()).items()}
    write_folder(folder, describe(model, estimator), arrays)
    return folder


def _arrays(model, optimizer_state):
    parameters, constants, _ = split(untied((model.generative, model.encoder)))
    parts = {"parameters": parameters, "constants": constants, "optimizer": optimizer_state}
    return {name: np.asarray(leaf) for name, leaf in named_leaves(parts)}


def load_structured(folder, generative: Any, recognition: Any) -> FittedModel:
    """Read a model that the user builds, with its conversion of data.

    Args:
        folder: The folder that :func:`save_model` wrote.
        generative: p(z) p(x|z), of the structure that was saved; its arrays are replaced.
        recognition: q(z|x), likewise; None if it was saved without one.
    """
    folder = checked_folder(folder)
    with blaming(folder):
        document, arrays = read_folder(folder)
        document = checked_document(document)
        parameters, constants, skeleton = split((generative, recognition))
        read = _read({"parameters": parameters, "constants": constants}, arrays)
        generative, recognition = join(read["parameters"], read["constants"], skeleton)
        return _model(document, Arguments(), generative, recognition)


def load_model(folder, own: dict[str, Any] | None = None, optimizer: Any = None, check: Any = None) -> Loaded:
    """Read a model of an estimator.

    Args:
        folder: The model's folder.
        own: The user-defined prior, encoder and decoder by name; None where the standard one was used.
        optimizer: The user-defined optax transformation, if the model was created with one and training continues.
        check: Function of the :class:`~aevb.settings.Arguments` in the file and the estimator's name that refuses
            invalid ones.

    Raises:
        ModelFileError: The folder is not a model, is damaged, or has a newer format.
    """
    folder = checked_folder(folder)
    with blaming(folder):
        document, arrays = read_folder(folder)
        document = checked_document(document)
        own = dict.fromkeys(OWN_PARTS) | (own or {})
        _check_own(own, optimizer, document)
        arguments = _checked_arguments(document, own, optimizer, check)
        with_optimizer = not document["own_optimizer"] or optimizer is not None
        learner, state, optimizer_state = _filled(document, arguments, arrays, with_optimizer)
        model = _model(document, arguments, *learner.models(state), estimator=_estimator(learner))
        if "features" in document:
            codes = document.get("codes")
            codes = None if codes is None else tuple(codes)
            model = replace(model, features=_features(document["features"], arrays, check), codes=codes)
        return Loaded(document["estimator"], model, optimizer_state)


def _features(document, arrays, check):
    """Return the model whose codes another one was learned from."""
    _check_own(dict.fromkeys(OWN_PARTS), None, document)
    own = {name.removeprefix(FEATURES): array for name, array in arrays.items() if name.startswith(FEATURES)}
    arguments = _checked_arguments(document, {}, None, check)
    learner, state, _ = _filled(document, arguments, own, with_optimizer=False)
    return _model(document, arguments, *learner.models(state), estimator=_estimator(learner))


def _checked_arguments(document, own, optimizer, check):
    known = set(SETTINGS) | set(ESTIMATOR_SETTINGS.get(document["estimator"], ()))
    if unknown := sorted(set(document["arguments"]) - known):
        raise ModelFileError(f"model.json: there is no argument {unknown[0]!r}.")
    arguments = _arguments(document, own, optimizer)
    if check is not None:
        check(arguments, document["estimator"])
    return arguments


def _estimator(learner):
    from aevb.estimators import name_of

    return name_of(learner.estimator)


def _check_own(own, optimizer, document):
    for name, network in own.items():
        if network is None and name in document["own_networks"]:
            raise ModelFileError(f"it was saved with your own {name}. Pass it: load(..., {name}=...).")
        if network is not None and name not in document["own_networks"]:
            raise ModelFileError(f"it was saved with the standard {name}. Leave out {name}=...")
    if optimizer is not None and not document["own_optimizer"]:
        raise ModelFileError("it was saved with a named optimizer. Leave out optimizer=...")


def _arguments(document, own, optimizer):
    given = {**document["arguments"], **{name: part for name, part in own.items() if part is not None}}
    for name in ("hidden", "latent_dim"):
        if isinstance(given.get(name), list):
            given[name] = tuple(tuple(item) if isinstance(item, list) else item for item in given[name])
    if document["own_optimizer"]:
        given["optimizer"] = optimizer or "adam"
    return Arguments(**given)


def _model(document, arguments, generative, recognition, estimator="sgvb-b"):
    fitted, conversion = document["fitted"], document["conversion"]
    rate = fitted["learning_rate_"]
    if document["own_optimizer"] and arguments.optimizer == "adam":
        rate = initial_learning_rate(arguments)  # Adam's; the saved one belongs to the other optimizer
    record = TrainingRecord(
        fitted["history_"],
        fitted["stopped_because_"],
        fitted["refit_epochs_"],
        rate,
        fitted["latent_dim_search_"],
        fitted["likelihood_reason_"],
    )
    format = read_format(conversion)
    facts = {"likelihood": fitted["likelihood_"], "latent_dim": fitted["latent_dim_"], "estimator": estimator}
    facts |= {"dispersion": fitted["dispersion_"], "record": record, "given": _given(document)}
    return FittedModel(generative, recognition, format, fitted["seed_"], arguments, **facts)


def _given(document):
    """Return the format of what rows are conditioned on; None if they are not."""
    return read_format(document["given"]) if "given" in document else None


def read_format(conversion: dict[str, Any]) -> Any:
    """Return the format that was described."""
    return FORMATS[conversion["kind"]].from_description(conversion)


def _filled(document, arguments, arrays, with_optimizer):
    """Return the learner, its state and the optimizer's state, if the arrays match the arguments."""
    format, likelihood = read_format(document["conversion"]), document["fitted"]["likelihood_"]
    size = getattr(format, "matrix", format).num_columns

    saved = document["fitted"].get("prior_")
    form = None if saved is None else PriorForm(**saved)

    def start():
        units = (filled(size, 0), filled(size, 1)) if LIKELIHOODS[likelihood].needs_units else None
        latent_dim, given = document["fitted"]["latent_dim_"], _given(document)
        settings = arguments.replaced(averaging=0)  # what is saved is the average itself
        design: Any = DESIGNS.get(document["conversion"]["kind"], Design).of(
            settings, likelihood, format, latent_dim, units, given
        )
        design = design if form is None else replace(design, prior_form=form)
        if arguments.levels and not any(name.endswith(".shortcut") for name in arrays):
            design = replace(design, has_shortcuts=False)  # a ladder of version 0.1.0
        learner, state = design.start(design.models(jax.random.key(0)), 1, 0.0, jax.random.key(0))
        parts = {"parameters": state.parameters, "constants": state.constants}
        return learner, state, parts | ({"optimizer": state.optimizer_state} if with_optimizer else {})

    # Shapes first: arguments that describe more than the file contains must not take memory or time.
    depth = len(arguments.hidden_for(is_table=likelihood == TABLE))
    names = {name.rpartition(".network.")[2] for name in arrays}
    is_mlp = arguments.decoder is None and arguments.network == "mlp"
    if is_mlp and not names.issuperset(f"layers[{number}].weight" for number in range(depth + 1)):
        raise ModelFileError(f"the arguments describe {depth} hidden layers, but the arrays have a different number.")
    _check_forms(arrays, _forms(lambda: start()[2]))
    learner, state, parts = start()
    read = _read(parts, arrays)
    state = state._replace(parameters=read["parameters"], constants=read["constants"])
    return learner, state, read.get("optimizer")


def _read(parts, arrays):
    """Return the tree with the arrays of the same names in place of its own."""
    _check_forms(arrays, _forms(lambda: parts))
    leaves = [on_device(arrays[name]) for name, _ in named_leaves(parts)]
    return jax.tree.unflatten(jax.tree.structure(parts), leaves)


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
