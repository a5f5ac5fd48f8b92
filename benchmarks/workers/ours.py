"""aevb: whole epochs inside VAE.fit, from the difference between a long and a short fit."""

import time

from common import BATCH_SIZE, HIDDEN, IS_GAUSSIAN, LATENT_DIM, NUM_DATA, load_rows, take_turns

import aevb


def fit_seconds(rows, epochs):
    vae = aevb.VAE(
        LATENT_DIM,
        likelihood="gaussian" if IS_GAUSSIAN else "bernoulli",
        hidden=(HIDDEN,),
        batch_size=BATCH_SIZE,
        activation="tanh",
        optimizer="adagrad",
        learning_rate=0.02,
        init="paper",
        max_epochs=epochs,
        validation_fraction=0,
        progress=False,
    )
    start = time.perf_counter()
    vae.fit(rows)
    return time.perf_counter() - start


if __name__ == "__main__":
    rows = load_rows()
    more = 2 * -(-50_000 // NUM_DATA)  # epochs, in a long fit

    def samples_per_second():
        return more * NUM_DATA / (fit_seconds(rows, epochs=1 + more) - fit_seconds(rows, epochs=1))

    take_turns(f"aevb {aevb.__version__}", samples_per_second)
