"""The arguments of `VAE`: the name of each, its default, its allowed values, and its meaning.

This is their only description: the constructor's checks, the options of `aevb fit`, `config.toml` and the docstring of
`VAE` are generated from it. It imports only the standard library, so that `aevb --help` does not load JAX.
"""

from aevb.settings.arguments import Arguments
from aevb.settings.labels import CLASSIFIER_SETTINGS, ESTIMATOR_SETTINGS, REGRESSOR_SETTINGS, STRUCTURE
from aevb.settings.sequences import SEQUENCE_SETTINGS
from aevb.settings.setting import Setting, with_arguments
from aevb.settings.table import MAX_WIDTH, OWN_PARTS, SETTINGS

__all__ = [
    "CLASSIFIER_SETTINGS",
    "ESTIMATOR_SETTINGS",
    "MAX_WIDTH",
    "OWN_PARTS",
    "REGRESSOR_SETTINGS",
    "SEQUENCE_SETTINGS",
    "SETTINGS",
    "STRUCTURE",
    "Arguments",
    "Setting",
    "with_arguments",
]
