"""Tasks for a trained model: encode, generate, denoise, impute, super-resolve, and walk through the latent space."""

from aevb.tasks.conditional import Completion, complete, latent_means
from aevb.tasks.latent_space import PATHS, Traversal, latent_path, manifold_grid, traversal_grid
from aevb.tasks.partly_observed import (
    by_completeness,
    given_observed,
    observed_bound_terms,
    observed_posterior,
    rows_with_holes,
)
from aevb.tasks.restoration import NOISES, denoise, impute, super_resolve
from aevb.tasks.rows import (
    decoder_mean,
    encode,
    numbers_of_rows,
    posterior_mean,
    posterior_mean_by_hmc,
    promote_batch,
    sample,
    sample_at,
    sample_mean,
)

__all__ = [
    "NOISES",
    "PATHS",
    "Completion",
    "Traversal",
    "by_completeness",
    "complete",
    "decoder_mean",
    "denoise",
    "encode",
    "given_observed",
    "impute",
    "latent_means",
    "latent_path",
    "manifold_grid",
    "numbers_of_rows",
    "observed_bound_terms",
    "observed_posterior",
    "posterior_mean",
    "posterior_mean_by_hmc",
    "promote_batch",
    "rows_with_holes",
    "sample",
    "sample_at",
    "sample_mean",
    "super_resolve",
    "traversal_grid",
]
