"""The compiled training loop: chunks of steps in one scan on donated state.

Python wakes once a chunk, to move the progress bar and to notice Ctrl-C or a number that is none, and once an epoch, to
record history and to ask whether learning has converged. The order of the data is a function of (seed, epoch) and the
noise one of (seed, chunk): a run is the same run wherever it is cut. Where the data of a chunk come from is the matter
of a feed, see :mod:`aevb.training.feed`; the compiled program is the same.

Paper: Algorithm 1.
"""

import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from aevb.training.convergence import Convergence
from aevb.training.evaluation import bound_terms
from aevb.training.feed import Feed, FeedError, Resident
from aevb.training.progress import Progress
from aevb.training.source import Source

_COMPILER_OPTIONS = {
    # Saves a copy of each large weight matrix in every step of the scan (seen in the compiled program).
    "xla_cpu_copy_insertion_use_region_analysis": True,
    # The optimizer's passes over memory take wide registers where the machine has them (7% of a step, measured).
    "xla_cpu_prefer_vector_width": 512,
}


@dataclass
class Trained:
    """What training leaves behind."""

    state: Any
    history: list[dict] = field(default_factory=list)
    stopped_because: str = "max_epochs"
    error: BaseException | None = None  # of data that failed after something was learned


def train(
    learner,
    state,
    source: Source,
    train_rows: np.ndarray,
    *,
    key: Array,
    batch_size: int,
    max_epochs: int,
    validation_rows: np.ndarray | None = None,
    patience: int | None = None,
    progress: bool = False,
    callback: Callable[[dict], None] | None = None,
) -> Trained:
    """Run a learner on rows that lie on the device, until its held-out bound has converged, or for `max_epochs`.

    Args:
        learner: See :class:`aevb.learners.Learner`.
        state: Where to start; it stays as it is.
        source: The data.
        train_rows: Numbers of the rows to learn from.
        key: Random key of the run.
        batch_size: M.
        max_epochs: Largest number of passes through the training rows.
        validation_rows: Numbers of the rows whose bound decides on convergence; None for none.
        patience: Epochs without a better held-out bound before the run ends; the best state is then given back.
        progress: Whether to show a progress bar.
        callback: Called with each epoch's row of the history.

    Returns:
        The state (the best one if there are validation rows), the history (one row an epoch) and why it stopped.

    Raises:
        FloatingPointError: The first chunk already met a number that is none; later ones end the run with a warning.

    Paper: Algorithm 1.
    """
    feed = Resident(source, train_rows, batch_size, validation_rows)
    options: dict[str, Any] = {"patience": patience, "progress": progress, "callback": callback}
    return train_on(learner, state, feed, key=key, max_epochs=max_epochs, **options)


def train_on(
    learner,
    state,
    feed: Feed,
    *,
    key: Array,
    max_epochs: int,
    patience: int | None = None,
    progress: bool = False,
    callback: Callable[[dict], None] | None = None,
) -> Trained:
    """Run a learner on the chunks of a feed; all else is as for :func:`train`.

    If the data fail after something was learned, that is kept, and the error is in the result.

    Paper: Algorithm 1.
    """
    order_key, noise_key, held_out_key = jax.random.split(key, 3)
    convergence, trained, reports = Convergence(patience), Trained(state, stopped_because=feed.end), []
    epoch, samples, steps, start = 1, 0, 0, time.perf_counter()

    def record():
        row = {"epoch": epoch, "samples": samples}
        averages = jax.tree.map(lambda *values: float(np.mean(np.concatenate(values))), *reports)
        row |= _columns(averages)  # the bound and its terms, or what a learner has instead
        if feed.held_out is not None:
            generative, recognition = learner.models(trained.state)
            held_out = bound_terms(
                generative, recognition, *feed.held_out, held_out_key, learner.estimator, learner.num_samples
            )
            row |= {f"validation_{name}": float(values.mean()) for name, values in _columns(held_out).items()}
            convergence.observe(row["validation_lower_bound"], trained.state)
        trained.history.append(row | {"seconds": time.perf_counter() - start})
        if callback is not None:
            callback(trained.history[-1])

    bar = Progress(progress, total=feed.samples(max_epochs))
    with bar, closing(feed.stretches(order_key, max_epochs)) as stretches:  # a thread that reads ahead ends with them
        try:
            for epoch, chunks in stretches:  # noqa: B007
                reports = []
                for chunk in chunks:
                    trained.state, report = safe_chunk(trained.state, chunk, noise_key, steps, learner=learner)
                    reports.append(report)
                    samples, steps = samples + chunk.plan.samples_per_chunk, steps + chunk.plan.num_steps
                    bar.advance(chunk.plan.samples_per_chunk, report._fields[0], report[0].mean())
                record()
                if convergence.is_reached:
                    trained.stopped_because = "converged"
                    break
            bar.end()
        except KeyboardInterrupt:
            trained.stopped_because = "interrupted"
            if trained.state is not state:
                bar.note(f"Interrupted: keeping what was learned from {samples:,} samples.")
        except FeedError as error:
            if trained.state is state:
                raise error.cause from None
            trained.stopped_because, trained.error = "failed", error.cause
        except DivergedError as error:
            if trained.state is state:
                raise
            trained.stopped_because = "diverged"
            message = f"{error} Training stopped at the last good state before that step."
            warnings.warn(message, RuntimeWarning, stacklevel=3)
    if reports and not trained.history and trained.stopped_because in ("interrupted", "failed"):
        record()  # of an epoch that may be days long, the part that was done
    if convergence.best_state is not None:
        trained.state = convergence.best_state
    return trained


def _columns(report):
    """Return what a report holds by name; a bound may have no terms."""
    return {name: values for name, values in report._asdict().items() if values is not None}


def safe_chunk(state, chunk, noise_key, first_step, *, learner):
    """Run a chunk on a copy, so that what was learned so far is safe from bad numbers and from Ctrl-C."""
    number, plan, *data = chunk
    after, info = run_chunk(copy_state(state), *data, noise_key, number, learner=learner, plan=plan)
    report = jax.tree.map(np.asarray, info)
    _check_finite(report, after.parameters, first_step)
    return after, report


@partial(jax.jit, static_argnames=("learner", "plan"), donate_argnames=("state",), compiler_options=_COMPILER_OPTIONS)
def run_chunk(state, source, rows, order, noise_key, number, *, learner, plan):
    """Scan the steps of one chunk; noise for all of them is drawn at once.

    `rows` are the training rows' numbers in the source, `order` says in which order their places are visited.
    """
    steps, size = plan.num_steps, plan.batch_size
    first = number % plan.num_chunks * plan.samples_per_chunk
    places = lax.dynamic_slice(order, (first,), (plan.samples_per_chunk,)).reshape(steps, size)
    key = jax.random.fold_in(noise_key, number)
    noise = learner.draw_noise(state, key, source.read(0), (steps, size))

    def step(state, inputs):
        places, noise, key = inputs
        return learner.step(state, source.draw(rows[places], key), noise, places)

    return lax.scan(step, state, (places, noise, source.keys(key, steps)))


@jax.jit  # one call, and not one for each array
def copy_state(state):
    """Return a state of its own memory, to be given away."""
    return jax.tree.map(jnp.copy, state)


class DivergedError(FloatingPointError):
    """A number in training became infinite or none."""


def _check_finite(report, parameters, first_step):
    """Raise if what is maximized, or a parameter after the chunk's last step, is no number."""
    values, name = report[0], report._fields[0].replace("_", " ")
    bad_steps = np.flatnonzero(~np.isfinite(values))
    if len(bad_steps):
        what, step = f"{name} became {values[bad_steps[0]]}", bad_steps[0]
    elif not are_finite(parameters):
        what, step = "parameters became infinite or nan", len(values) - 1
    else:
        return
    raise DivergedError(
        f"The {what} at step {first_step + step}. "
        "Lower the learning_rate, or rescale the data to a standard deviation near 1."
    )


def are_finite(arrays) -> bool:
    """Whether all numbers of a pytree are finite."""
    return all(np.isfinite(array).all() for array in jax.tree.leaves(arrays))
