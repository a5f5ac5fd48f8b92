"""BlackJAX: the same chains, compiled once, in a Python loop over datapoints."""

import time

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from common import (
    CHAINS,
    DATA_DIM,
    LEAPFROG,
    LIKELIHOOD_HIDDEN,
    LIKELIHOOD_LATENT_DIM,
    NUM_ROWS,
    SAMPLES,
    TUNING,
    load_rows,
    take_turns,
)

J = LIKELIHOOD_LATENT_DIM
NUM_TIMED = 50  # of the datapoints: the loop takes the same time for each
NUM_TRANSITIONS = TUNING + 2 * SAMPLES // CHAINS


def log_joint(weights, x, z):
    W, V = weights
    logits = jnp.tanh(z @ W) @ V
    return -jnp.sum(z**2) / 2 + jnp.sum(x * logits - jax.nn.softplus(logits))


@jax.jit
def chains(weights, x, key):
    """Run the chains of one datapoint, at a fixed step size: less work than the others do."""
    kernel = blackjax.hmc(lambda z: log_joint(weights, x, z), 0.1, jnp.ones(J), LEAPFROG)

    def one_chain(key):
        start, key = jax.random.split(key)
        state = kernel.init(jax.random.normal(start, (J,)))

        def step(state, key):
            state, _ = kernel.step(key, state)
            return state, (state.position, state.logdensity)

        return jax.lax.scan(step, state, jax.random.split(key, NUM_TRANSITIONS))[1]

    return jax.vmap(one_chain)(jax.random.split(key, CHAINS))


if __name__ == "__main__":
    rows = load_rows()[:NUM_ROWS].astype(np.float32) / 255
    keys = jax.random.split(jax.random.key(0), 2)
    weights = (
        jax.random.normal(keys[0], (J, LIKELIHOOD_HIDDEN)) / J**0.5,
        jax.random.normal(keys[1], (LIKELIHOOD_HIDDEN, DATA_DIM)) / LIKELIHOOD_HIDDEN**0.5,
    )

    def datapoints_per_second():
        start = time.perf_counter()
        for number, x in enumerate(rows[:NUM_TIMED]):
            jax.block_until_ready(chains(weights, x, jax.random.key(number)))
        return NUM_TIMED / (time.perf_counter() - start)

    take_turns(f"BlackJAX {blackjax.__version__}, one datapoint at a time, untuned", datapoints_per_second)
