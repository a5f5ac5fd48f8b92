"""aevb: `VAE.log_likelihood` by appendix D's estimator, with enough samples to match PyTorch's error.

It leaves its decoder, and accurate values of log p(x), to the other workers.
"""

import time
import warnings

import numpy as np
from common import (
    CHAINS,
    LEAPFROG,
    LIKELIHOOD_HIDDEN,
    LIKELIHOOD_LATENT_DIM,
    LIKELIHOODS,
    NUM_ROWS,
    TUNING,
    error_of,
    load_rows,
    take_turns,
)

import aevb

NUM_KNOWN, NUM_WEIGHTS = 200, 20_000  # rows whose log p(x) is found by importance sampling, with so many samples
SAMPLES = 28  # instead of 50: still a smaller error than the hand-written one


def leave(vae, rows):
    """Store the decoder, and log p(x) of the rows where importance sampling is accurate."""
    warnings.simplefilter("ignore", UserWarning)  # of rows where it is not
    known = vae.log_likelihood(rows[:NUM_KNOWN], num_samples=NUM_WEIGHTS)
    is_accurate = (known.std_errors < 0.03) & (known.diagnostics["k_hat"] < 0.7)
    layers = vae.generative_.decoder.network.layers
    arrays = {f"{name}{i}": getattr(layer, name) for i, layer in enumerate(layers) for name in ("weight", "bias")}
    np.savez(LIKELIHOODS, rows=np.flatnonzero(is_accurate), values=known.values[is_accurate], **arrays)


if __name__ == "__main__":
    rows = load_rows()
    setting = {"hidden": (LIKELIHOOD_HIDDEN,), "activation": "tanh", "max_epochs": 2, "likelihood": "bernoulli"}
    vae = aevb.VAE(LIKELIHOOD_LATENT_DIM, progress=False, **setting)
    vae.fit(rows)
    leave(vae, rows)
    options = {"num_chains": CHAINS, "num_tuning": TUNING, "num_leapfrog": LEAPFROG, "density": "gaussian"}
    options["num_proposals"] = 2 * CHAINS  # the others start from the prior, without a search for modes
    errors = []

    def datapoints_per_second():
        start = time.perf_counter()
        found = vae.log_likelihood(rows[:NUM_ROWS], method="hmc", num_samples=SAMPLES, **options)
        seconds = time.perf_counter() - start
        errors.append(error_of(found.values))
        return NUM_ROWS / seconds

    take_turns(lambda: f"aevb {aevb.__version__}, error {errors[-1]:.2f} nats", datapoints_per_second)
