"""How long a curve will take on this machine, before it is run: operations, and how fast the machine does them.

Paper: §5.
"""

import time
from functools import cache, partial

import jax
import jax.numpy as jnp

from aevb.experiments.judges import LEAPFROG_STEPS, POSTERIOR_SAMPLES, TUNING_STEPS
from aevb.experiments.settings import Curve

DATA_DIMS = {"mnist": 784, "mnist-5k": 784, "frey-faces": 560, "digits": 64}
EFFICIENCY = 0.5  # of the speed of large products, that learning reaches; 0.35 to 0.65 were measured
START_SECONDS = 8.0  # to compile a curve's programs
# Matrix products of a training sample through (encoder, decoder): forwards, and back to weights and inputs.
_PRODUCTS = {"aevb": (2, 3), "wake-sleep": (3, 3), "mcem": (0, 31)}


@cache
def gigaflops() -> float:
    """Return how many billion operations a second one core does in float32 products of large matrices."""
    return _gigaflops(time.process_time)  # of all threads


def gigaflops_of_machine() -> float:
    """Return how many billion operations a second all cores do together in float32 products of large matrices."""
    return _gigaflops(time.perf_counter)


def _gigaflops(clock):
    size, repeats = 1000, 8
    a = jnp.ones((size, size)) / size
    rates = []
    for _ in range(4):  # the first compiles
        start = clock()
        _products(a, repeats).block_until_ready()
        rates.append(2 * size**3 * repeats / (clock() - start))
    return max(rates) / 1e9


@partial(jax.jit, static_argnames="repeats")
def _products(a, repeats):
    return jax.lax.fori_loop(0, repeats, lambda _, b: a @ b, a)


def operations_per_sample(curve: Curve) -> float:
    """Return the floating-point operations that learning from one datapoint takes."""
    encoder, decoder = _PRODUCTS[curve.learner]
    outputs = 1 if curve.likelihood == "bernoulli" else 2  # means and variances
    size = DATA_DIMS[curve.data] * max(curve.hidden, 1)
    return 2 * size * (encoder + outputs * decoder * curve.num_samples)


def core_seconds(curve: Curve, done: int = 0) -> float:
    """Return about how long one core needs for what of a curve is not done yet."""
    left = max(curve.samples[-1] - done, 0)
    stops = sum(stop > done for stop in curve.samples)
    if not stops:
        return 0.0
    rows = 2 * curve.judged
    row = 4 * DATA_DIMS[curve.data] * max(curve.hidden, 1)  # through both networks, or forwards and back through one
    if curve.judge == "marginal-likelihood":
        row *= 4 * (TUNING_STEPS + POSTERIOR_SAMPLES / 2) * LEAPFROG_STEPS
    operations = left * operations_per_sample(curve) + stops * rows * row
    return START_SECONDS + operations / (EFFICIENCY * gigaflops() * 1e9)


def in_words(seconds: float) -> str:
    """Return a length of time as people say it.

    Example:
        >>> in_words(5400), in_words(200), in_words(20)
        ('1.5 hours', '3 minutes', '20 seconds')
    """
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
