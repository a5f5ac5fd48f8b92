"""Measure how much the encoder's gradient varies with the noise, for each estimator; write docs/reproduction/gradients.

python tools/gradient_variances.py [FOLDER]

The JSON file contains the numbers, the Markdown file the table that docs/estimators.md includes. The data are MNIST
(5,000 training images, binarized once), the network is 784-200-200-20 with tanh, the minibatch has 100 images.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp

from aevb import VAE
from aevb.data import binarize, load_dataset
from aevb.experiments.claims.gradients import encoder_gradient_variance
from aevb.experiments.result_file import ResultFile, markdown_table

EPOCHS = (0, 5, 50)
CASES = [  # estimator, L
    *((name, 1) for name in ("score-function", "sgvb-a", "sgvb-b", "sgvb-stl")),
    *((name, k) for k in (5, 50) for name in ("importance", "importance-dreg")),
]
REPEATS, SEED = 200, 0
ABOUT = {
    "title": "Variance of the encoder's gradient, summed over its parameters",
    "data": "mnist-5k, binarized once; a minibatch of 100 training images",
    "network": "784-200-200-20, tanh, Bernoulli; learned by estimator B, Adam, batches of 100",
    "repeats": REPEATS,
    "seed": SEED,
}


def main(folder):
    X = binarize(load_dataset("mnist-5k").rows, "static", SEED)
    results = ResultFile(folder / "gradients.json", ABOUT)
    for epochs in EPOCHS:
        models = None
        for name, num_samples in CASES:

            def measure(name=name, num_samples=num_samples, epochs=epochs):
                nonlocal models
                models = models or learned(X, epochs)
                arguments = models, jnp.asarray(X[:100]), name, num_samples, REPEATS, jax.random.key(SEED)
                return {"variance": encoder_gradient_variance(*arguments)}

            found = results.add((str(epochs), f"{name}, L = {num_samples}"), measure)
            print(f"{epochs} epochs, {name}, L = {num_samples}: {found['variance']:.4g}", flush=True)
    results.write_summary(table(results.results))


def learned(X, epochs):
    options = {"validation_fraction": 0, "progress": False, "init": "glorot", "random_state": SEED}
    learning_rate = 1e-3 if epochs else 1e-12  # the start: a step so small that it does not matter
    vae = VAE(20, likelihood="bernoulli", hidden=(200, 200), activation="tanh", estimator="sgvb-b", **options)
    vae.set_params(max_epochs=max(epochs, 1), learning_rate=learning_rate)
    model = vae.fit(X).model_
    return model.generative, model.recognition


def table(results):
    """Return the table: a row for each estimator, a column for each stage."""
    stages = [*results]
    rows = [["estimator", *(f"after {epochs} epochs" for epochs in stages)]]
    for case in results[stages[0]]:
        rows.append([case, *(f"{results[epochs][case]['variance']:.3g}" for epochs in stages)])
    return markdown_table(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "docs/reproduction")
