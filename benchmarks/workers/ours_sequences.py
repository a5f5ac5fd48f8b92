"""aevb: whole epochs of Bach's chorales inside SequenceVAE.fit, from the difference between a long and a short fit."""

import time

from common import CHORALES, take_turns

import aevb
from aevb.data.chorales import load_chorales

EPOCHS = 4


def fit_seconds(rolls, epochs):
    model = aevb.SequenceVAE(
        CHORALES["latent_dim"],
        likelihood="bernoulli",
        transition="gated",
        hidden=(CHORALES["emission"], CHORALES["emission"]),
        transition_hidden=(CHORALES["transition"],),
        recurrent_size=CHORALES["recurrent"],
        batch_size=CHORALES["batch"],
        learning_rate=8e-4,
        max_epochs=epochs,
        validation_fraction=0,
        progress=False,
    )
    start = time.perf_counter()
    model.fit(rolls)
    return time.perf_counter() - start


if __name__ == "__main__":
    rolls = load_chorales().train
    take_turns(
        f"aevb {aevb.__version__}",
        lambda: EPOCHS * len(rolls) / (fit_seconds(rolls, epochs=1 + EPOCHS) - fit_seconds(rolls, epochs=1)),
    )
