"""The five large matrix products of a training step, scanned, and nothing else."""

import time

import jax
import jax.numpy as jnp
from common import BATCH_SIZE, DATA_DIM, HIDDEN, take_turns

NUM_STEPS = 250


@jax.jit
def scan_products(weights, batches):
    encoder, decoder = weights  # (out, in), as the library stores them

    def step(_, x):
        h = x @ encoder.T  # (M, H)
        y = h @ decoder.T  # (M, D)
        decoder_gradient = y.T @ h
        h_gradient = y @ decoder
        encoder_gradient = h_gradient.T @ x
        return (encoder_gradient, decoder_gradient), None  # carried, so that none is optimized away

    return jax.lax.scan(step, weights, batches)[0]


if __name__ == "__main__":
    keys = jax.random.split(jax.random.key(0), 3)
    weights = (
        0.01 * jax.random.normal(keys[0], (HIDDEN, DATA_DIM)),
        0.01 * jax.random.normal(keys[1], (DATA_DIM, HIDDEN)),
    )
    batches = jax.random.uniform(keys[2], (NUM_STEPS, BATCH_SIZE, DATA_DIM), jnp.float32)

    def samples_per_second():
        start = time.perf_counter()
        for _ in range(2):
            jax.block_until_ready(scan_products(weights, batches))
        return 2 * NUM_STEPS * BATCH_SIZE / (time.perf_counter() - start)

    take_turns(f"five matrix products, jax {jax.__version__}", samples_per_second)
