"""aevb: whole epochs inside VAE.fit, from the difference between a long and a short fit."""

import time

from common import HIDDEN, LATENT_DIM, NUM_DATA, load_rows, take_turns

import aevb


def fit_seconds(rows, epochs):
    vae = aevb.VAE(
        LATENT_DIM,
        likelihood="bernoulli",
        hidden=(HIDDEN,),
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
    take_turns(
        f"aevb {aevb.__version__}", lambda: 2 * NUM_DATA / (fit_seconds(rows, epochs=3) - fit_seconds(rows, epochs=1))
    )
