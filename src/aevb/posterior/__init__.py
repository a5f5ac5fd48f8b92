"""Fit an approximate posterior to a user-defined model, given its log joint density."""

from aevb.posterior.fit import fit_posterior
from aevb.posterior.optimization import Optimization

__all__ = ["Optimization", "fit_posterior"]
