"""Shared by all workers: the data, and how they take turns."""

import gzip
import os
import sys
import time
from pathlib import Path

import numpy as np

# N, M, D, hidden units and J by AEVB_BENCH_SIZE: the paper's network, and models that are bound by small products.
SIZES = {
    "paper": (50_000, 100, 784, 500, 20),
    "large-batch": (50_000, 1000, 784, 500, 20),
    "digits": (20_000, 100, 64, 50, 10),
    "table": (20_000, 100, 13, 50, 4),
}
SIZE = os.environ.get("AEVB_BENCH_SIZE", "paper")
NUM_DATA, BATCH_SIZE, DATA_DIM, HIDDEN, LATENT_DIM = SIZES[SIZE]
IS_GAUSSIAN = SIZE == "table"  # p(x|z); otherwise Bernoulli

# Marginal likelihoods, with the settings of the paper's appendix E.
NUM_ROWS, LIKELIHOOD_HIDDEN, LIKELIHOOD_LATENT_DIM = 1000, 100, 3
SAMPLES, LEAPFROG = 50, 4  # per stage, over all chains of a datapoint
CHAINS, TUNING = 2, 100  # not given in the paper
LIKELIHOODS = Path(os.environ.get("AEVB_BENCH_SHARED", ".")) / "likelihoods.npz"  # a decoder, and its log p(x)

# Deep Markov models of Bach's chorales: the published sizes.
CHORALES = {"latent_dim": 100, "emission": 100, "transition": 200, "recurrent": 400, "batch": 20}


def load_rows():
    """Return rows: real numbers, or 50,000 images as bytes, MNIST where AEVB_DATA has it, or random bytes."""
    if IS_GAUSSIAN:
        return np.random.default_rng(0).normal(size=(NUM_DATA, DATA_DIM)).astype(np.float32)
    folder = Path(os.environ.get("AEVB_DATA", "")) / "mnist"
    for name in ("train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"):
        path = folder / name
        if path.exists() and DATA_DIM == 784:
            raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            return np.frombuffer(raw, np.uint8, NUM_DATA * DATA_DIM, 16).reshape(NUM_DATA, DATA_DIM)
    return np.random.default_rng(0).integers(0, 256, (NUM_DATA, DATA_DIM), dtype=np.uint8)


def error_of(values):
    """Return the root mean square error of estimates of log p(x), in nats, at the rows whose values are known."""
    known = np.load(LIKELIHOODS)
    return float(np.sqrt(np.mean((np.asarray(values)[known["rows"]] - known["values"]) ** 2)))


def rate_of_chunks(X, num_chunks=8):
    """Return samples/s inside VAE.fit(X), from the end of the first chunk to the end of the last, then interrupt it."""
    import aevb
    from aevb.training.progress import Progress

    times, samples = [], []

    def advance(self, count, name, value):
        times.append(time.perf_counter())
        samples.append(count)
        if len(times) > num_chunks:
            raise KeyboardInterrupt

    Progress.advance = advance
    setting = {"likelihood": "bernoulli", "activation": "tanh", "optimizer": "adagrad", "learning_rate": 0.02}
    vae = aevb.VAE(LATENT_DIM, hidden=(HIDDEN,), init="paper", batch_size=BATCH_SIZE, progress=False, **setting)
    vae.set_params(validation_fraction=0, max_epochs=100).fit(X)
    return sum(samples[1:]) / (times[-1] - times[0])


def take_turns(name, samples_per_second):
    """Print `name` (or its return value), then answer each line of standard input with `samples_per_second()`."""
    samples_per_second()  # compilation and warm-up
    print(name() if callable(name) else name, flush=True)
    for _ in sys.stdin:
        print(samples_per_second(), flush=True)
