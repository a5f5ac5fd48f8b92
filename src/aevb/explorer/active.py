"""Which latent variables are active, as the report and the interactive page count them: on the same rows."""

import numpy as np

from aevb.data.run_data import RunData
from aevb.explorer.given import rows_given
from aevb.explorer.model import has_encoder
from aevb.explorer.stacked import codes_read
from aevb.fitted import FittedModel, coding
from aevb.inference.diagnostics import ActiveUnits, active_codes

MAX_ROWS = 10_000
MAX_ROWS_WITHOUT_ENCODER = 200  # whose codes are found by sampling, row by row


def evenly(num_rows: int, most: int) -> np.ndarray:
    """Return the indices of at most `most` rows, evenly spread."""
    return np.arange(num_rows) if num_rows <= most else np.linspace(0, num_rows - 1, most).astype(int)


def active_latents(model: FittedModel, run_data: RunData) -> ActiveUnits:
    """Return which latent variables are active on held-out rows; `aevb.inference.diagnostics` defines it."""
    most = MAX_ROWS if has_encoder(model) else MAX_ROWS_WITHOUT_ENCODER
    numbers = evenly(len(run_data.test), most)
    codes = coding.posterior_means(model, rows_given(model, run_data.test, run_data.test_given, numbers))
    # p(z) of M1+M2 depends on y; both of its models have the prior N(0, I).
    prior = None if codes_read(model) else model.generative.latent_distribution()
    return active_codes(codes, prior)
