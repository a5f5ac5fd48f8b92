"""Load estimators from model files."""

from pathlib import Path
from typing import Any

from aevb.persistence import load_model
from aevb.persistence.description import ModelFileError
from aevb.programs import keep_programs
from aevb.settings import ESTIMATOR_SETTINGS, SETTINGS, Arguments
from aevb.vae.checks import check_settings
from aevb.vae.classifier import VAEClassifier
from aevb.vae.estimator import VAE
from aevb.vae.regressor import VAERegressor
from aevb.vae.sequence import SequenceVAE

ESTIMATOR_CLASSES = {
    "VAE": VAE,
    "VAERegressor": VAERegressor,
    "VAEClassifier": VAEClassifier,
    "SequenceVAE": SequenceVAE,
}  # what a model file may name


def load(
    folder: str | Path,
    *,
    prior: Any = None,
    encoder: Any = None,
    decoder: Any = None,
    transition: Any = None,
    optimizer: Any = None,
) -> Any:
    """Read a model that the method `save` of an estimator wrote.

    Args:
        folder: The model's folder.
        prior: Your own prior, if the model was created with one; its arrays are replaced by the saved ones.
        encoder: Your own encoder, likewise.
        decoder: Your own decoder, likewise.
        transition: Your own transition of a model of sequences, likewise.
        optimizer: Your own optax transformation, if the model was created with one and training continues.

    Returns:
        The fitted model.

    Raises:
        ModelFileError: The folder is not a model, is damaged, or has a newer format.
    """
    keep_programs()
    own = {"prior": prior, "encoder": encoder, "decoder": decoder, "transition": transition}
    loaded = load_model(folder, own, optimizer, _check)
    if loaded.estimator not in ESTIMATOR_CLASSES:
        raise ModelFileError(
            f"{folder} contains a model of {loaded.estimator!r}; load reads {', '.join(ESTIMATOR_CLASSES)}."
        )
    return ESTIMATOR_CLASSES[loaded.estimator]._of(loaded.model, loaded.optimizer_state)


def _check(arguments: Arguments, estimator: str) -> None:
    """Refuse invalid arguments in a model file, those of its estimator."""
    known = SETTINGS | ESTIMATOR_SETTINGS.get(estimator, {})
    check_settings(arguments, {name: setting for name, setting in known.items() if name in vars(arguments)})
