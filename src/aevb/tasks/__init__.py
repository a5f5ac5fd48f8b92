"""What people do with a trained model."""

from aevb.tasks.conditional import Completion, complete
from aevb.tasks.latent_space import PATHS, Traversal, latent_path, manifold_grid, traversal_grid
from aevb.tasks.restoration import NOISES, denoise, impute, super_resolve
from aevb.tasks.rows import (
    decoder_mean,
    encode,
    posterior_mean,
    posterior_mean_by_hmc,
    promote_batch,
    sample,
    sample_mean,
)

__all__ = [
    "NOISES",
    "PATHS",
    "Completion",
    "Traversal",
    "complete",
    "decoder_mean",
    "denoise",
    "encode",
    "impute",
    "latent_path",
    "manifold_grid",
    "posterior_mean",
    "posterior_mean_by_hmc",
    "promote_batch",
    "sample",
    "sample_mean",
    "super_resolve",
    "traversal_grid",
]
