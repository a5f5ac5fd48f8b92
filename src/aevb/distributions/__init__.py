"""Distributions, and the reparameterization trick for them.

numpyro's distributions under numpyro's own names, the families of the paper's §2.4 that numpyro lacks, and
`reparameterize`, which splits any of them into noise and a transformation. Structure is a
distribution too, over a tree of arrays: `Product`, `Chain` and `MarkovChain`; `Stack` is a chain as one vector, and
`Columns` is one over the row of a table.
"""

from numpyro.distributions import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]

from aevb.distributions import composition, flow, inverse_cdf, location_scale, numerical
from aevb.distributions.chain import Chain
from aevb.distributions.columns import Columns
from aevb.distributions.discretized_logistic import DiscretizedLogistics
from aevb.distributions.erlang import Erlang
from aevb.distributions.fisher_snedecor import FisherSnedecor
from aevb.distributions.flow import Flow, starting_flow
from aevb.distributions.gaussian_mixture import GaussianMixture
from aevb.distributions.histogram import Histogram, from_positions
from aevb.distributions.levels import Levels, OrderedLevels
from aevb.distributions.log_mean_negative_binomial import LogMeanNegativeBinomial
from aevb.distributions.log_rate_poisson import LogRatePoisson
from aevb.distributions.log_scale_normal import LogScaleNormal
from aevb.distributions.markov_chain import MarkovChain
from aevb.distributions.observed import observe
from aevb.distributions.piecewise_linear import PiecewiseLinear
from aevb.distributions.product import Product
from aevb.distributions.quantile_normal import QuantileNormal
from aevb.distributions.rayleigh import Rayleigh
from aevb.distributions.reciprocal import Reciprocal
from aevb.distributions.reparameterization import Reparameterization, reparameterize
from aevb.distributions.stack import Stack
from aevb.distributions.tree import TreeDistribution, has_real_support
from aevb.distributions.triangular import Triangular
from aevb.distributions.word_counts import WordCounts

__all__ = [
    "Chain",
    "Columns",
    "DiscretizedLogistics",
    "Erlang",
    "FisherSnedecor",
    "Flow",
    "GaussianMixture",
    "Histogram",
    "Levels",
    "LogMeanNegativeBinomial",
    "LogRatePoisson",
    "LogScaleNormal",
    "MarkovChain",
    "OrderedLevels",
    "PiecewiseLinear",
    "Product",
    "QuantileNormal",
    "Rayleigh",
    "Reciprocal",
    "Reparameterization",
    "Stack",
    "TreeDistribution",
    "Triangular",
    "WordCounts",
    "composition",
    "flow",
    "from_positions",
    "has_real_support",
    "inverse_cdf",
    "location_scale",
    "numerical",
    "observe",
    "reparameterize",
    "starting_flow",
]
