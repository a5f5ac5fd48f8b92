"""The bound of held-out rows, which decides when a run has converged and which of its states is the best."""

from jax import Array

from aevb.estimators import Terms, is_weighted
from aevb.training.evaluation import Batches, SeveralBatches, bound_terms_of_batches
from aevb.training.reports import entries
from aevb.training.weights import weighted_mean

JUDGED_DRAWS, MAX_DRAWS = 1000, 16  # draws of z: at least over all held-out rows, and at most per row


def judge(learner, held_out: Batches | SeveralBatches, key: Array, state) -> dict[str, float]:
    """Return the average bound of held-out rows and its terms, by name, such as ``"validation_lower_bound"``."""
    terms = held_out_terms(learner, held_out, key, state)
    return {f"validation_{name}": weighted_mean(values, held_out.weights) for name, values in entries(terms).items()}


def held_out_terms(learner, held_out: Batches | SeveralBatches, key: Array, state) -> Terms:
    """Return the bound of each held-out row and its terms, (n,); few rows get more draws of z, to reduce the noise."""
    estimator, num_samples = learner.row_bound
    if not is_weighted(estimator):  # for which the number of draws is part of the bound
        num_samples = max(num_samples, min(MAX_DRAWS, -(-JUDGED_DRAWS // held_out.num_rows)))
    return bound_terms_of_batches(learner.models(state), held_out, key, estimator, num_samples)
