"""Models: the generative p(z) p(x|z) and the recognition model q(z|x), as Equinox modules that return distributions."""

from aevb.models.assembly import OWN_PARTS, assemble, check_models, has_real_support
from aevb.models.conditionals import BernoulliMLP, GaussianMLP, Rescaled
from aevb.models.generative import GenerativeModel
from aevb.models.parameters import Parts, Skeleton, join, named_leaves, split
from aevb.models.recognition import RecognitionModel
from aevb.models.standard import LIKELIHOODS, standard_models, standard_normal
from aevb.models.weights import BayesianGenerativeModel

__all__ = [
    "LIKELIHOODS",
    "OWN_PARTS",
    "BayesianGenerativeModel",
    "BernoulliMLP",
    "GaussianMLP",
    "GenerativeModel",
    "Parts",
    "RecognitionModel",
    "Rescaled",
    "Skeleton",
    "assemble",
    "check_models",
    "has_real_support",
    "join",
    "named_leaves",
    "split",
    "standard_models",
    "standard_normal",
]
