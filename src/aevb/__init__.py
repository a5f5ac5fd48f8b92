"""Deep latent-variable models learned by Auto-Encoding Variational Bayes."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aevb import distributed, distributions
    from aevb.distributions import reparameterize
    from aevb.persistence import ModelFileError
    from aevb.posterior import fit_posterior
    from aevb.vae import VAE, SequenceVAE, VAEClassifier, VAERegressor, load

__version__ = "0.1.0"
__all__ = [
    "VAE",
    "ModelFileError",
    "SequenceVAE",
    "VAEClassifier",
    "VAERegressor",
    "__version__",
    "distributed",
    "distributions",
    "fit_posterior",
    "load",
    "reparameterize",
]

# The module of each public name; it is imported at first use, so that `import aevb` stays light.
_MODULES = {
    "ModelFileError": "aevb.persistence",
    "SequenceVAE": "aevb.vae",
    "VAE": "aevb.vae",
    "VAEClassifier": "aevb.vae",
    "VAERegressor": "aevb.vae",
    "fit_posterior": "aevb.posterior",
    "load": "aevb.vae",
    "reparameterize": "aevb.distributions",
}
_SUBMODULES = {"distributed", "distributions"}


def __getattr__(name: str):
    if name in _SUBMODULES:
        return import_module(f"aevb.{name}")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'aevb' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
