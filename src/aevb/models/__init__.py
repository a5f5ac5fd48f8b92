"""Models: the generative p(z) p(x|z) and the recognition model q(z|x), as Equinox modules that return distributions."""

from aevb.distributions import has_real_support
from aevb.models.assembly import OWN_PARTS, assemble, check_models, check_real_support
from aevb.models.conditionals import BernoulliMLP, Conditional, GaussianMLP, Rescaled, conditional
from aevb.models.conversion import Codes, Conversion, Numbers
from aevb.models.datapoint import Datapoint
from aevb.models.families import (
    CUSTOM,
    FAMILIES,
    LIKELIHOODS,
    NAMED_LIKELIHOODS,
    POSTERIORS,
    Family,
    standard_normal,
)
from aevb.models.flat import flattened
from aevb.models.generative import AbstractGenerativeModel, GenerativeModel
from aevb.models.log_joint import LogJoint, check_log_joint, check_supports, unused_variables
from aevb.models.parameters import Parts, Skeleton, join, named_leaves, split
from aevb.models.recognition import RecognitionModel
from aevb.models.standard import standard_models
from aevb.models.variable_posterior import Amortized, Posterior, RowByRow
from aevb.models.variables import Variables, describe
from aevb.models.variational import POSTERIOR_FAMILIES, Learnable
from aevb.models.weights import BayesianGenerativeModel

__all__ = [
    "CUSTOM",
    "FAMILIES",
    "LIKELIHOODS",
    "NAMED_LIKELIHOODS",
    "OWN_PARTS",
    "POSTERIORS",
    "POSTERIOR_FAMILIES",
    "AbstractGenerativeModel",
    "Amortized",
    "BayesianGenerativeModel",
    "BernoulliMLP",
    "Codes",
    "Conditional",
    "Conversion",
    "Datapoint",
    "Family",
    "GaussianMLP",
    "GenerativeModel",
    "Learnable",
    "LogJoint",
    "Numbers",
    "Parts",
    "Posterior",
    "RecognitionModel",
    "Rescaled",
    "RowByRow",
    "Skeleton",
    "Variables",
    "assemble",
    "check_log_joint",
    "check_models",
    "check_real_support",
    "check_supports",
    "conditional",
    "describe",
    "flattened",
    "has_real_support",
    "join",
    "named_leaves",
    "split",
    "standard_models",
    "standard_normal",
    "unused_variables",
]
