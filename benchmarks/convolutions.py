"""Compare an epoch of a convolutional model with a plain jitted JAX loop, and with PyTorch, of the same network.

    AEVB_DATA=... python benchmarks/convolutions.py [--network conv] [--rounds 5] [--torch PYTHON]

All three train the same encoder and decoder (widths, kernels, normalization, activation), with Adam and batches of 100,
on 2,000 rows of MNIST. They take turns in this process and in one that PyTorch's interpreter runs, on as many threads
as the process may use; the table has the median of CPU seconds per epoch, without compilation, and ratios.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

WIDTHS, LATENT_DIM, BATCH, NUM_ROWS = (64, 32), 20, 100, 2000
WORKER = Path(__file__).resolve().parent / "workers" / "torch_convolutions.py"


def ours(rows, network):
    """Yield CPU seconds of epochs of our training loop."""
    import jax

    from aevb.fitted.design import Design
    from aevb.models import MatrixFormat
    from aevb.settings import Arguments
    from aevb.training import Source
    from aevb.training.feed import Resident
    from aevb.training.loop import safe_chunk

    arguments = Arguments(network=network, latent_dim=LATENT_DIM, hidden=WIDTHS, batch_size=BATCH)
    design = Design.of(arguments, "bernoulli", MatrixFormat(784, image_shape=(28, 28)), LATENT_DIM)
    learner, state = design.start(design.models(jax.random.key(0)), NUM_ROWS, 1e-3, jax.random.key(0))
    feed, key, epoch = Resident(Source(rows), np.arange(NUM_ROWS), BATCH), jax.random.key(0), 0
    while True:
        start = time.process_time()
        for chunk in feed.chunks(key, epoch):
            state, _ = safe_chunk(state, chunk, key, 0, learner=learner)
        yield time.process_time() - start
        epoch += 1


def plain_jax(rows, network):
    """Yield CPU seconds of epochs of a jitted step, called from Python, with the same networks and bound."""
    import jax
    import jax.numpy as jnp
    import optax

    from aevb.networks import NetworkKind, initialize

    kind = NetworkKind(network, (28, 28))
    networks = (
        kind.build(784, WIDTHS[::-1], 2 * LATENT_DIM, "gelu"),
        kind.build(LATENT_DIM, WIDTHS, 784, "gelu", side="output"),
    )
    parameters, optimizer = initialize(networks, jax.random.key(0)), optax.adam(1e-3)
    rows, memory = jnp.asarray(rows), optimizer.init(parameters)

    def loss(parameters, x, epsilon):
        encoder, decoder = parameters
        mu, log_variance = jnp.split(encoder(x), 2, axis=-1)
        logits = decoder(mu + jnp.exp(log_variance / 2) * epsilon)
        kl = jnp.sum(jnp.exp(log_variance) + mu**2 - 1 - log_variance, axis=-1) / 2
        return jnp.mean(
            kl + jnp.sum(jnp.maximum(logits, 0) - logits * x + jnp.log1p(jnp.exp(-jnp.abs(logits))), axis=-1)
        )

    @jax.jit
    def step(parameters, memory, places, key):
        x = rows[places]
        gradient = jax.grad(loss)(parameters, x, jax.random.normal(key, (BATCH, LATENT_DIM)))
        updates, memory = optimizer.update(gradient, memory)
        return optax.apply_updates(parameters, updates), memory

    key, random = jax.random.key(1), np.random.default_rng(0)
    while True:
        start, order = time.process_time(), random.permutation(NUM_ROWS).reshape(-1, BATCH)
        for number, places in enumerate(order):
            parameters, memory = step(parameters, memory, places, jax.random.fold_in(key, number))
        jax.block_until_ready(parameters)
        yield time.process_time() - start


class Torch:
    """CPU seconds of epochs in a process with PyTorch."""

    def __init__(self, python, file, network):
        command = [python, str(WORKER), file, network, str(len(os.sched_getaffinity(0)))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __next__(self):
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("epoch\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="conv", choices=("conv", "resnet"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--torch", help="an interpreter with PyTorch")
    options = parser.parse_args()
    from aevb.data import load_dataset

    rows = (load_dataset("mnist-5k").rows[:NUM_ROWS] > 127).astype(np.float32)
    runs = {"aevb": ours(rows, options.network), "plain JAX loop": plain_jax(rows, options.network)}
    if options.torch:
        np.save(file := "/tmp/aevb-convolutions.npy", rows)
        runs["PyTorch"] = Torch(options.torch, file, options.network)
    for run in runs.values():
        next(run)  # compiles
    times = {name: [] for name in runs}
    for _ in range(options.rounds):
        for name, run in runs.items():
            times[name].append(next(run))
    medians = {name: float(np.median(found)) for name, found in times.items()}
    print(json.dumps({"network": options.network, "threads": len(os.sched_getaffinity(0)), "seconds": medians}))
    for name, seconds in medians.items():
        print(f"{name:15} {seconds:.2f} CPU s per epoch of {NUM_ROWS} rows, {seconds / medians['aevb']:.2f} x aevb")


if __name__ == "__main__":
    sys.exit(main())
