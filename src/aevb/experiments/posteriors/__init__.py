"""`fit_posterior` with default settings on posteriors whose moments are known from long runs of Markov chains."""

from aevb.experiments.posteriors.table import posteriors_core_seconds, reproduce_posteriors

__all__ = ["posteriors_core_seconds", "reproduce_posteriors"]
