"""Where the time of a step goes: the paper's MNIST network, with the paper's settings and by default, part by part.

    python benchmarks/parts.py [--rounds 9] [--output runs/parts.json]

Programs that each do a little more than the one before take turns: the five large products; steps of plain gradient
ascent; steps with the optimizer; the loop of `fit`, with its rows, its noise and its reports. A part is the difference
between two of them, from the medians of the rounds. Run it on an idle machine.
"""

import argparse
import json
import statistics
import sys
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from run import HERE, machine

from aevb import VAE
from aevb.learners import AEVB
from aevb.learners.optimizers import OPTIMIZERS
from aevb.models import split, standard_models
from aevb.networks import initialize
from aevb.training.chunk_steps import COMPILER_OPTIONS

sys.path.insert(0, str(HERE / "workers"))
from common import BATCH_SIZE, DATA_DIM, HIDDEN, LATENT_DIM, load_rows
from products import scan_products

NUM_STEPS = 100
# Optimizer, activation, precision of the parameters' prior, share of the steps whose parameters are averaged.
SETTINGS = {"the paper's": ("adagrad", "tanh", 1.0, 0.0), "by default": ("adam", "gelu", 1.0, 0.1)}
PARTS = {  # what each program adds to the one before
    "products": "five large matrix products",
    "ascent": "transcendental functions, small products, sums, one pass over the parameters",
    "step": "optimizer, prior, average of the parameters",
    "loop": "reading rows, drawing noise, reports, calls from Python",
}


def programs(optimizer, activation, prior, averaging):
    """Return functions that return the milliseconds of a step, each with a little more of what `fit` does."""
    rows = load_rows()
    models = standard_models(DATA_DIM, LATENT_DIM, (HIDDEN,), "bernoulli", activation=activation)
    models = initialize(models, jax.random.key(0))
    order = np.random.default_rng(0).permutation(len(rows))[: NUM_STEPS * BATCH_SIZE].reshape(NUM_STEPS, BATCH_SIZE)
    batches = jnp.asarray(rows[order], jnp.float32) / 255
    keys = jax.random.split(jax.random.key(1), 2)
    weights = [0.01 * jax.random.normal(key, shape) for key, shape in zip(keys, _shapes(), strict=True)]

    def steps_of(learner):
        state = learner.init(models, 1e-3, jax.random.key(2))
        noise = learner.draw_noise(state, jax.random.key(3), batches[0, 0], order.shape)

        @partial(jax.jit, compiler_options=COMPILER_OPTIONS)
        def scan(state, *inputs):
            return jax.lax.scan(lambda state, inputs: learner.step(state, *inputs), state, inputs)

        return lambda: jax.block_until_ready(scan(state, batches, noise, order))

    skeleton = split(models).skeleton
    plain = AEVB(skeleton, len(rows), optimizer=optax.sgd(1.0), parameter_prior=0.0)
    whole = AEVB(skeleton, len(rows), optimizer=OPTIMIZERS[optimizer], parameter_prior=prior, averaging=averaging)
    found = {
        "products": lambda: jax.block_until_ready(scan_products(tuple(weights), batches)),
        "ascent": steps_of(plain),
        "step": steps_of(whole),
    }
    return {name: partial(_milliseconds, run) for name, run in found.items()} | {
        "loop": partial(_of_fit, rows, optimizer, activation, averaging)
    }


def _shapes():
    return (HIDDEN, DATA_DIM), (DATA_DIM, HIDDEN)


def _milliseconds(run, repeats=3):
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return 1000 * (time.perf_counter() - start) / (repeats * NUM_STEPS)


def _of_fit(rows, optimizer, activation, averaging):
    """Return the milliseconds of a step inside of `fit`, from the difference between a long and a short fit."""

    def seconds(epochs):
        setting = {"optimizer": optimizer, "activation": activation, "averaging": averaging, "learning_rate": 1e-3}
        setting |= {"hidden": (HIDDEN,), "max_epochs": epochs, "validation_fraction": 0, "likelihood": "bernoulli"}
        start = time.perf_counter()
        VAE(LATENT_DIM, progress=False, **setting).fit(rows)
        return time.perf_counter() - start

    return 1000 * (seconds(3) - seconds(1)) / (2 * len(rows) / BATCH_SIZE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--output", type=Path, default=Path("runs/parts.json"))
    chosen = parser.parse_args()
    stored = {}
    for setting, arguments in SETTINGS.items():
        measures = programs(*arguments)
        for measure in measures.values():
            measure()  # compilation
        rounds = [{name: measure() for name, measure in measures.items()} for _ in range(chosen.rounds)]
        stored[setting] = {name: statistics.median(turn[name] for turn in rounds) for name in measures}
        report(setting, stored[setting])
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps({"machine": machine(), "parts": stored}, indent=1))
    print(f"Wrote {chosen.output}")


def report(setting, totals):
    """Print the milliseconds of each part, and its share of a step of `fit`."""
    print(f"\n{setting}: milliseconds per step; {machine()}")
    before = 0.0
    for name, words in PARTS.items():
        part, before = totals[name] - before, totals[name]
        print(f"{words:78}{part:7.2f}{part / totals['loop']:7.0%}", flush=True)


if __name__ == "__main__":
    main()
