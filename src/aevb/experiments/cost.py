"""How long a curve will take on this machine: its operation count, and the speed of the machine.

Paper: §5.
"""

import time
from functools import cache, partial

import jax
import jax.numpy as jnp

from aevb.experiments.metrics import LEAPFROG_STEPS, POSTERIOR_SAMPLES, TUNING_STEPS
from aevb.experiments.settings import Curve

DATA_DIMS = {"mnist": 784, "mnist-5k": 784, "frey-faces": 560, "digits": 64}
EFFICIENCY = 0.5  # training speed as a fraction of the speed of large products; 0.35 to 0.65 were measured
START_SECONDS = 8.0  # to compile a curve's programs
# Matrix products per training sample through (encoder, decoder): forward, and backward to weights and inputs.
_PRODUCTS = {"aevb": (2, 3), "wake-sleep": (3, 3), "mcem": (0, 31)}


@cache
def gigaflops() -> float:
    """Return the speed of one core in float32 products of large matrices, in billions of operations per second."""
    return _gigaflops(time.process_time)  # CPU time of all threads


def gigaflops_of_machine() -> float:
    """Return the speed of all cores in float32 products of large matrices, in billions of operations per second."""
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
    """Return the number of floating-point operations for training on one datapoint."""
    encoder, decoder = _PRODUCTS[curve.learner]
    outputs = 1 if curve.likelihood == "bernoulli" else 2  # means and variances
    size = DATA_DIMS[curve.data] * max(curve.hidden, 1)
    return 2 * size * (encoder + outputs * decoder * curve.num_samples)


def core_seconds(curve: Curve, done: int = 0) -> float:
    """Return approximately how long one core needs for the remaining part of a curve."""
    left = max(curve.samples[-1] - done, 0)
    stops = sum(stop > done for stop in curve.samples)
    if not stops:
        return 0.0
    rows = 2 * curve.num_evaluated
    row = 4 * DATA_DIMS[curve.data] * max(curve.hidden, 1)  # through both networks, or forward and backward through one
    if curve.metric == "marginal-likelihood":
        row *= 4 * (TUNING_STEPS + POSTERIOR_SAMPLES / 2) * LEAPFROG_STEPS
    operations = left * operations_per_sample(curve) + stops * rows * row
    return START_SECONDS + operations / (EFFICIENCY * gigaflops() * 1e9)


def format_duration(seconds: float) -> str:
    """Return a duration in words.

    Example:
        >>> format_duration(5400), format_duration(200), format_duration(20)
        ('1.5 hours', '3 minutes', '20 seconds')
    """
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
