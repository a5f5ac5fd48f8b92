"""The part of a model that a page contains: the layer description and the named arrays of its model file."""

from typing import Any

import numpy as np
from numpyro.distributions import Distribution, Normal

from aevb.data.sequence_format import SequenceFormat
from aevb.explorer.arrays import as_half
from aevb.explorer.columns import describe_columns
from aevb.explorer.features import shown_model
from aevb.explorer.given import describe_given, is_regressor, why_not
from aevb.explorer.stacked import codes_read
from aevb.fitted import FittedModel
from aevb.models import LIKELIHOODS, TABLE, named_leaves, split
from aevb.models.hierarchy import Ladder
from aevb.models.priors import MIXTURE
from aevb.models.sharing import untied

PAGE_LIKELIHOODS = ("bernoulli", "gaussian", "sigmoid-gaussian", TABLE)  # which page/model.js and families.js decode
_ARGUMENTS = ("hidden", "activation", "learner", "network")
_NETWORKS = ("mlp", "conv", "resnet")  # which page/network.js and page/conv.js run


class NotExplorableError(ValueError):
    """A model cannot be explored in the browser; the message says why."""


def check_explorable(model: FittedModel) -> None:
    """Refuse a model that the page cannot run in the browser.

    Raises:
        NotExplorableError: The message says why, and what the page can run.
    """
    if isinstance(model.format, SequenceFormat):
        return  # its page contains what is shown, and runs no network
    model = shown_model(model)
    own = model.arguments.own_parts
    if own:
        raise NotExplorableError(
            f"this model has its own {' and '.join(own)}, but the browser can only run networks built by aevb.VAE "
            "(MLPs with any hidden layers and activation)."
        )
    if model.arguments.network not in _NETWORKS:
        raise NotExplorableError(
            f"this model has network={model.arguments.network!r}, but the browser can only run "
            f"{', '.join(map(repr, _NETWORKS))}."
        )
    if is_regressor(model):
        return  # a table of targets, of which the page needs no encoder
    if model.likelihood not in PAGE_LIKELIHOODS and not LIKELIHOODS[model.likelihood].counts:
        raise NotExplorableError(
            f"this model has likelihood={model.likelihood!r}, but the browser can only run "
            f"{', '.join(map(repr, PAGE_LIKELIHOODS[:-1]))} and tables."
        )
    if LIKELIHOODS[model.likelihood].counts:
        raise NotExplorableError(
            f"this model has likelihood={model.likelihood!r}, but the browser cannot run its decoder. vae.topics() "
            "gives the words of its topics."
        )
    posterior = model.arguments.posterior
    if posterior != "gaussian" and has_encoder(model):
        raise NotExplorableError(
            f"this model has posterior={posterior!r}, but the page can only draw posterior='gaussian' (with any "
            "likelihood, hidden layers, activation and learner)."
        )
    if (reason := why_not(model)) is not None:
        raise NotExplorableError(f"{reason}.")
    form = model.prior_form
    if (form is None and not _has_standard_prior(model)) or (form is not None and form.name != MIXTURE):
        raise NotExplorableError(
            "this model has another prior than N(0, I) or a mixture, from which the page cannot draw."
        )


def _has_standard_prior(model):
    """Whether p(z), or that of the last level of a hierarchy, is N(0, I)."""
    prior = getattr(_last_level(model), "base_dist", None)
    if not isinstance(prior, Normal):
        return False
    return bool(np.all(np.asarray(prior.loc) == 0) and np.all(np.asarray(prior.scale) == 1))


def _last_level(model) -> Any:
    """Return p(z), or that of the last level of a hierarchy."""
    prior = model.point_generative.prior
    top = getattr(prior, "top", prior)
    return top if isinstance(top, Distribution) else top()


def has_encoder(model: FittedModel) -> bool:
    """Whether a network computes q(z|x)."""
    return model.learner.needs_encoder


def describe(model: FittedModel) -> dict[str, Any]:
    """Return the layer description of a model, as in its `model.json`, and the name of its learner."""
    arguments = {name: getattr(model.arguments, name) for name in _ARGUMENTS}
    return {
        **arguments,
        "latent_dim": model.latent_dim,
        "levels": levels_of(model),
        "is_ladder": isinstance(getattr(model.encoder, "encoder", None), Ladder),
        "image_shape": _image_shape(model),
        "hidden": [int(width) for width in model.arguments.hidden_for(is_table=model.is_table)],
        "likelihood": model.likelihood,
        "data_dim": model.matrix.num_columns,
        "learner_name": model.learner.title,
        "has_encoder": has_encoder(model),
        "has_weight_posterior": model.learner.has_weight_posterior,
        "table": describe_columns(model) if model.is_table else None,
        "codes": codes_read(model),
        "prior": _mixture(model),
        "given": describe_given(model),
    }


def levels_of(model: FittedModel) -> list[int]:
    """Return the number of variables of each level, that next to the data first."""
    return [int(size) for size in model.arguments.levels or (model.latent_dim,)]


def _image_shape(model):
    """Return (height, width, channels) of the images that networks read; None if rows are not images."""
    shape = None if model.is_table else model.matrix.image_shape
    return None if shape is None else [int(side) for side in (*shape, 1)[:3]]


def _mixture(model):
    """Return the parameters of a learned mixture, of the last level, as lists; None for the prior N(0, I)."""
    if model.prior_form is None:
        return None
    p = _last_level(model)
    scale = np.linalg.inv(np.asarray(p.whitening, np.float64))
    arrays = {"log_weights": np.log(p.weights), "loc": p.loc, "whitening": p.whitening, "scale": scale}
    return {name: np.asarray(array, np.float64).tolist() for name, array in arrays.items()}


def model_arrays(model: FittedModel) -> dict[str, np.ndarray]:
    """Return the arrays of the networks by their names in the model file, matrices in half precision.

    Vectors stay in single precision: they are small, and the units of the data may have any scale. For full VB these
    are the means of q(theta).
    """
    parameters, constants, _ = split(untied((model.point_generative, model.encoder)))
    leaves = {name: np.asarray(leaf) for name, leaf in named_leaves({"parameters": parameters, "constants": constants})}
    return {
        name: as_half(leaf) if leaf.ndim >= 2 else leaf.astype(np.float32)
        for name, leaf in leaves.items()
        if ".decoder.shared[" not in name  # of the columns of a table: these are in the description
    }
