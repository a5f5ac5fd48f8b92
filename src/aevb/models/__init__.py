"""Models: the generative p(z) p(x|z) and the recognition model q(z|x), as Equinox modules that return distributions."""

from aevb.distributions import has_real_support
from aevb.models.assembly import (
    NOTHING_GIVEN,
    OWN_PARTS,
    Given,
    assemble,
    assemble_table,
    check_models,
    check_real_support,
)
from aevb.models.augmentation import AUGMENTATIONS, Augmented
from aevb.models.column import Column
from aevb.models.conditionals import BernoulliMLP, Conditional, GaussianMLP, Rescaled, conditional
from aevb.models.conversion import Codes, Conversion, Gaussians, Numbers
from aevb.models.covariates import Covariates, with_covariates
from aevb.models.datapoint import Datapoint
from aevb.models.families import (
    CUSTOM,
    FAMILIES,
    LIKELIHOODS,
    NAMED_LIKELIHOODS,
    POSTERIORS,
    TABLE,
    Family,
    standard_normal,
)
from aevb.models.flat import flattened
from aevb.models.formats import Format, MatrixFormat, TreeFormat
from aevb.models.generative import AbstractGenerativeModel, GenerativeModel
from aevb.models.hierarchy import HIERARCHIES, LADDER, initialized_levels, with_levels
from aevb.models.labels import FeatureEncoder, LabelEncoder, LabelModel, LabelNetwork, with_classifier, with_labels
from aevb.models.log_joint import LogJoint, check_log_joint, check_supports, unused_variables
from aevb.models.parameters import Parts, Skeleton, join, named_leaves, split
from aevb.models.priors import (
    PRIOR_NAMES,
    PRIORS,
    STANDARD,
    Inputs,
    MixturePrior,
    PriorForm,
    form_of,
    mixture_prior,
    named_form,
)
from aevb.models.recognition import RecognitionModel
from aevb.models.sequence import RECOGNITIONS, SequenceShape, sequence_models, start_sequence_models
from aevb.models.sharing import tied, untied
from aevb.models.sparse_rows import SparseRows, is_sparse
from aevb.models.standard import standard_models
from aevb.models.table import TableDecoder, TableEncoder, table_models
from aevb.models.topics import TopicDecoder, WordEncoder
from aevb.models.transitions import TRANSITIONS, GatedTransition, LinearTransition, Step
from aevb.models.variable_posterior import Amortized, Posterior, RowByRow
from aevb.models.variables import Variables, describe
from aevb.models.variational import POSTERIOR_FAMILIES, Learnable
from aevb.models.weights import BayesianGenerativeModel

__all__ = [
    "AUGMENTATIONS",
    "CUSTOM",
    "FAMILIES",
    "HIERARCHIES",
    "LADDER",
    "LIKELIHOODS",
    "NAMED_LIKELIHOODS",
    "NOTHING_GIVEN",
    "OWN_PARTS",
    "POSTERIORS",
    "POSTERIOR_FAMILIES",
    "PRIORS",
    "PRIOR_NAMES",
    "RECOGNITIONS",
    "STANDARD",
    "TABLE",
    "TRANSITIONS",
    "AbstractGenerativeModel",
    "Amortized",
    "Augmented",
    "BayesianGenerativeModel",
    "BernoulliMLP",
    "Codes",
    "Column",
    "Conditional",
    "Conversion",
    "Covariates",
    "Datapoint",
    "Family",
    "FeatureEncoder",
    "Format",
    "GatedTransition",
    "GaussianMLP",
    "Gaussians",
    "GenerativeModel",
    "Given",
    "Inputs",
    "LabelEncoder",
    "LabelModel",
    "LabelNetwork",
    "Learnable",
    "LinearTransition",
    "LogJoint",
    "MatrixFormat",
    "MixturePrior",
    "Numbers",
    "Parts",
    "Posterior",
    "PriorForm",
    "RecognitionModel",
    "Rescaled",
    "RowByRow",
    "SequenceShape",
    "Skeleton",
    "SparseRows",
    "Step",
    "TableDecoder",
    "TableEncoder",
    "TopicDecoder",
    "TreeFormat",
    "Variables",
    "WordEncoder",
    "assemble",
    "assemble_table",
    "check_log_joint",
    "check_models",
    "check_real_support",
    "check_supports",
    "conditional",
    "describe",
    "flattened",
    "form_of",
    "has_real_support",
    "initialized_levels",
    "is_sparse",
    "join",
    "mixture_prior",
    "named_form",
    "named_leaves",
    "sequence_models",
    "split",
    "standard_models",
    "standard_normal",
    "start_sequence_models",
    "table_models",
    "tied",
    "untied",
    "unused_variables",
    "with_classifier",
    "with_covariates",
    "with_labels",
    "with_levels",
]
