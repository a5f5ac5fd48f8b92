"""What a page holds of a model: the layer description of its model file, and the arrays under their names there."""

from typing import Any

import numpy as np

from aevb.explorer.arrays import as_half
from aevb.models import OWN_PARTS, named_leaves, split
from aevb.vae import VAE

_ARGUMENTS = ("hidden", "activation", "learner")


class NotExplorableError(ValueError):
    """A model that cannot be explored in the browser, with the reason."""


def check_explorable(vae: VAE) -> None:
    """Refuse a model that the page cannot run in the browser.

    Raises:
        NotExplorableError: With the reason, and what the page can run.
    """
    own = [name for name in OWN_PARTS if getattr(vae, name) is not None]
    if own:
        raise NotExplorableError(
            f"this model has its own {' and '.join(own)}, and the browser can only run networks built by aevb.VAE "
            "(MLPs with any hidden layers and activation)."
        )
    posterior = vae.get_params()["posterior"]
    if posterior != "gaussian" and has_encoder(vae):
        raise NotExplorableError(
            f"this model has posterior={posterior!r}, and the page can only draw posterior='gaussian' (with any "
            "likelihood, hidden layers, activation and learner)."
        )


def has_encoder(vae: VAE) -> bool:
    """Whether a network gives q(z|x)."""
    return vae._learner_kind.needs_encoder


def describe(vae: VAE) -> dict[str, Any]:
    """Return the layer description of a model, as in its `model.json`, and what its learner is called."""
    arguments = {name: getattr(vae, name) for name in _ARGUMENTS}
    return {
        **arguments,
        "latent_dim": vae.latent_dim_,
        "hidden": [int(width) for width in vae._hidden_widths()],
        "likelihood": vae.likelihood_,
        "data_dim": int(getattr(vae, "n_features_in_")),  # noqa: B009
        "learner_name": vae._learner_kind.title,
        "has_encoder": has_encoder(vae),
        "has_weight_posterior": vae._learner_kind.has_weight_posterior,
    }


def model_arrays(vae: VAE) -> dict[str, np.ndarray]:
    """Return the arrays of the networks under their names in the model file: matrices in half precision.

    Vectors stay in single precision: they are few, and the units of the data may be of any size. Of full VB these are
    the means of q(theta).
    """
    generative, recognition = vae._networks()
    if vae._learner_kind.has_weight_posterior:
        generative = generative.mean
    parameters, constants, _ = split((generative, recognition))
    leaves = {name: np.asarray(leaf) for name, leaf in named_leaves({"parameters": parameters, "constants": constants})}
    return {name: as_half(leaf) if leaf.ndim == 2 else leaf.astype(np.float32) for name, leaf in leaves.items()}
