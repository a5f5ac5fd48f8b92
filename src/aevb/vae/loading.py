"""Load estimators from model files."""

from aevb.persistence import load_model
from aevb.persistence.description import ModelFileError
from aevb.vae.checks import check_settings
from aevb.vae.estimator import VAE

ESTIMATOR_CLASSES = {"VAE": VAE}  # what a model file may name


def load(folder, *, prior=None, encoder=None, decoder=None, optimizer=None) -> VAE:
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
    own = {"prior": prior, "encoder": encoder, "decoder": decoder}
    loaded = load_model(folder, own, optimizer, check_settings)
    if loaded.estimator not in ESTIMATOR_CLASSES:
        raise ModelFileError(
            f"{folder} contains a model of {loaded.estimator!r}; load reads {', '.join(ESTIMATOR_CLASSES)}."
        )
    return ESTIMATOR_CLASSES[loaded.estimator]._of(loaded.model, loaded.optimizer_state)
