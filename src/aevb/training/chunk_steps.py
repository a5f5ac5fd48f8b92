"""The steps of a chunk: the loop scans them, or runs them one by one, as a diagnosis does."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np
from jax import lax

from aevb.estimators.samples import CHUNK
from aevb.models.compilation import contains

COMPILER_OPTIONS = {
    # Saves a copy of each large weight matrix in every step of the scan (seen in the compiled program).
    "xla_cpu_copy_insertion_use_region_analysis": True,
    # Use wide registers for the optimizer's passes over memory where available (saves 7% of a step, measured).
    "xla_cpu_prefer_vector_width": 512,
}
_program = partial(jax.jit, static_argnames=("learner", "plan"), compiler_options=COMPILER_OPTIONS)


def chunk_steps(state, source, rows, order, noise_key, number, *, learner, plan):
    """Return the stacked inputs of a chunk's steps, and the function of a state and the inputs of one step.

    `rows` are the indices of the training rows in the source; `order` is the order in which they are visited. Noise for
    all steps is drawn at once, which is faster; with many samples per row each step draws its own, which needs less
    memory.
    """
    steps, size = plan.num_steps, plan.batch_size
    first = number % plan.num_chunks * plan.samples_per_chunk
    places = lax.dynamic_slice(order, (first,), (plan.samples_per_chunk,)).reshape(steps, size)
    key = jax.random.fold_in(noise_key, number)
    noise = jax.random.split(key, steps)
    if not draws_in_step(learner):
        noise = learner.draw_noise(state, key, source.read(0), (steps, size))
    return (places, noise, source.keys(key, steps)), step_on(source, rows, learner)


def draws_in_step(learner) -> bool:
    """Whether each step draws its own noise."""
    return getattr(learner, "num_samples", 1) > CHUNK


def step_on(source, rows, learner) -> Callable:
    """Return the function of a state and the inputs of one step."""

    def step(state, inputs):
        places, noise, key = inputs
        if draws_in_step(learner):
            shape = 1, len(places)
            noise = jax.tree.map(lambda n: n[0], learner.draw_noise(state, noise, source.read(0), shape))
        return learner.step(state, source.draw(rows[places], key), noise, places)

    return step


def one_by_one(state, source, rows, order, noise_key, number, *, learner, plan):
    """Run a chunk like :func:`aevb.training.loop.run_chunk`, with one call of a program for each step."""
    inputs = _inputs(state, source, rows, order, noise_key, number, learner=learner, plan=plan)
    reports = []
    for place in range(plan.num_steps):
        state, report = _step(state, source, rows, inputs, place, learner=learner, plan=plan)
        reports.append(report)
    return state, jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *reports)


@_program
def _inputs(state, source, rows, order, noise_key, number, *, learner, plan):
    return chunk_steps(state, source, rows, order, noise_key, number, learner=learner, plan=plan)[0]


@partial(_program, donate_argnames=("state",))
def _step(state, source, rows, inputs, place, *, learner, plan):
    return step_on(source, rows, learner)(state, jax.tree.map(lambda leaf: leaf[place], inputs))


def has_slow_loop(trace: Callable[..., Any], *arguments, learner, plan) -> bool:
    """Whether a compiled loop over the steps would be slow, because they contain convolutions and run on a CPU.

    Inside of loops XLA does not bring the convolutions of gradients into the form that its fast routine needs; they
    then take 20 to 30 times as long (measured with JAX 0.10). Any network is recognized, by what its step computes.

    Args:
        trace: Traces the loop, as its first call would do, without compiling it.
        arguments: Its arguments.
        learner: The learner.
        plan: The plan of the chunks.
    """
    if jax.default_backend() != "cpu":
        return False
    found = _found(learner, plan)
    if not found:
        program = trace(*arguments, learner=learner, plan=plan).jaxpr.jaxpr
        found.append(contains(program, {"conv_general_dilated"}))
    return found[0]


@lru_cache(maxsize=64)
def _found(learner, plan) -> list[bool]:
    """Return the place for what was found for a learner."""
    return []
