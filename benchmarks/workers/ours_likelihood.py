"""aevb: `VAE.log_likelihood` by appendix D's estimator."""

import time

from common import (
    CHAINS,
    LEAPFROG,
    LIKELIHOOD_HIDDEN,
    LIKELIHOOD_LATENT_DIM,
    NUM_ROWS,
    SAMPLES,
    TUNING,
    load_rows,
    take_turns,
)

import aevb

if __name__ == "__main__":
    rows = load_rows()
    vae = aevb.VAE(LIKELIHOOD_LATENT_DIM, hidden=(LIKELIHOOD_HIDDEN,), activation="tanh", max_epochs=2, progress=False)
    vae.fit(rows)
    options = {"num_chains": CHAINS, "num_tuning": TUNING, "num_leapfrog": LEAPFROG, "density": "gaussian"}
    options["num_proposals"] = 2 * CHAINS  # the others start from the prior, without a search for modes

    def datapoints_per_second():
        start = time.perf_counter()
        vae.log_likelihood(rows[:NUM_ROWS], method="hmc", num_samples=SAMPLES, **options)
        return NUM_ROWS / (time.perf_counter() - start)

    take_turns(f"aevb {aevb.__version__}", datapoints_per_second)
