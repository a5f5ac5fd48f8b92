"""What people do with a trained model, as functions of one row."""

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
    "decoder_mean",
    "encode",
    "posterior_mean",
    "posterior_mean_by_hmc",
    "promote_batch",
    "sample",
    "sample_mean",
]
