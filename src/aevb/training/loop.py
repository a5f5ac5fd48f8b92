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
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from aevb.estimators import importance
from aevb.training.budget import Patience
from aevb.training.checkpoint import Checkpoints, SaveError
from aevb.training.chunk_steps import chunk_steps
from aevb.training.diagnosis import DivergedError, check_finite, diagnose
from aevb.training.evaluation import bound_terms
from aevb.training.feed import Chunk, Feed, FeedError, Resident
from aevb.training.position import Position
from aevb.training.progress import Progress
from aevb.training.source import Source

JUDGED_DRAWS, MAX_DRAWS = 1000, 16  # of z over all held-out rows, at least, and of each at the most
MAX_HALVINGS = 5  # of the learning rate, when a number becomes none
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
    error: BaseException | None = None  # of data, or of a disk, that failed after something was learned
    halvings: int = 0  # of the learning rate
    best_bound: float | None = None  # of held-out rows
    best_path: tuple[int, ...] = ()  # rows of the history up to the best state, by learning rate


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
    patience: int | Patience | None = None,
    progress: bool = False,
    callback: Callable[[dict], None] | None = None,
    checkpoints: Checkpoints | None = None,
) -> Trained:
    """Run a learner on the chunks of a feed; all else is as for :func:`train`.

    If a number becomes infinite or none, the run goes back to the state before that chunk, halves the learning rate and
    tries again, five times in all. If the data fail after something was learned, or the disk does, that is kept, and
    the error is in the result.

    Args:
        learner: See :class:`aevb.learners.Learner`.
        state: Where to start; it stays as it is.
        feed: The data.
        key: Random key of the run.
        max_epochs: Largest number of passes through the training rows.
        patience: Rows of the history without a better held-out bound before the run ends, or a
            :class:`~aevb.training.budget.Patience`; the best state is then given back.
        progress: Whether to show a progress bar.
        callback: Called with each epoch's row of the history.
        checkpoints: Where the run is saved, and goes on from if it was.

    Paper: Algorithm 1.
    """
    with nullcontext() if checkpoints is None else checkpoints.locked():
        rule = patience if isinstance(patience, Patience) else Patience(patience)
        return _train_on(learner, state, feed, key, max_epochs, rule, progress, callback, checkpoints)


def _train_on(learner, state, feed: Feed, key, max_epochs, patience, progress, callback, checkpoints) -> Trained:
    order_key, noise_key, held_out_key = jax.random.split(key, 3)
    now = Position(state)
    judge = None if feed.held_out is None else partial(_judge, learner, *feed.held_out, held_out_key)
    if checkpoints is not None:
        report_of_a_step = cache(lambda: _report_of_a_step(learner, state, feed, noise_key))
        now = checkpoints.newest(now, lambda steps: _repeated(report_of_a_step(), steps))
        if now.history and now.history[-1]["epoch"] > max_epochs:
            epochs = now.history[-1]["epoch"]
            message = f"max_epochs={max_epochs}: the run that was saved has {epochs} epochs, and stays as it is."
            warnings.warn(message, UserWarning, stacklevel=4)
    if judge is not None and patience.judges_start and not now.samples:
        now = now.judged(judge(now.state)["validation_lower_bound"])
    begin = time.perf_counter() - now.seconds
    epoch, stopped_because, failure, can_save = 1, feed.end, None, True

    def record(now, epoch):
        row = {"epoch": epoch, "samples": now.samples}
        averages = jax.tree.map(lambda *values: float(np.mean(np.concatenate(values))), *now.reports)
        row |= _columns(averages)  # the bound and its terms, or what a learner has instead
        if judge is not None:
            row |= judge(now.state)
            if not np.isfinite(row["validation_lower_bound"]):
                message = (
                    f"The held-out bound of epoch {epoch} is not finite: look for a strange row among those held out."
                )
                warnings.warn(message, RuntimeWarning, stacklevel=5)
        return now.recorded(row | {"seconds": time.perf_counter() - begin})

    bar = Progress(progress, total=feed.samples(max_epochs), done=now.samples)
    stretches = feed.stretches(order_key, max_epochs, now.next_chunk)
    try:
        with bar, closing(stretches):  # a thread that reads ahead ends with them; Ctrl-C may come there too
            for epoch, chunks in stretches:
                last = -1
                for chunk in chunks:
                    last = chunk.number
                    if last < now.next_chunk:
                        continue  # a checkpoint had it already
                    now = _advance(now, chunk, noise_key, learner, lambda: time.perf_counter() - begin)
                    report = now.reports[-1]
                    bar.advance(chunk.plan.samples_per_chunk, report._fields[0], report[0].mean())
                    if checkpoints is not None:
                        checkpoints.offer(now)
                if now.reports and last + 1 == now.next_chunk:  # and not of an epoch that is passed over
                    now = record(now, epoch)
                    if callback is not None:
                        callback(now.history[-1])
                if patience.rows is not None and now.epochs_since >= patience.rows:
                    if now.reductions >= patience.num_reductions or now.best_state is None:
                        stopped_because = "converged"
                        break
                    now = now.with_reduced_step()
            bar.end()
    except KeyboardInterrupt:
        stopped_because = "interrupted"
        if now.samples:
            bar.note(f"Interrupted: keeping what was learned from {now.samples:,} samples.")
    except (FeedError, SaveError) as error:
        if not now.samples:
            raise error.cause from None
        stopped_because, failure = "failed", error.cause
        can_save = isinstance(error, FeedError)
    except DivergedError as error:
        if not now.samples:
            raise
        stopped_because = "diverged"
        message = f"{error} Training stopped at the last good state before that step."
        warnings.warn(message, RuntimeWarning, stacklevel=4)
    if checkpoints is not None and can_save and now.samples:
        try:
            checkpoints.save(now)
        except KeyboardInterrupt:
            stopped_because = "interrupted"  # the model keeps what was learned, and the checkpoint before is there
        except SaveError as error:
            stopped_because, failure = "failed", error.cause
    if now.reports and not now.history and stopped_because in ("interrupted", "failed", "diverged"):
        now = record(now, epoch)  # of an epoch that may be days long, the part that was done
    best = now.state if now.best_state is None else now.best_state
    path = tuple(now.best_path) if now.best_bound is not None else (*now.path, now.rows_since)
    return Trained(best, list(now.history), stopped_because, failure, now.halvings, now.best_bound, path)


def _judge(learner, source, rows, key, state) -> dict[str, float]:
    """Return the bound of held-out rows and its terms; few rows get more draws of z, so that their noise is small."""
    generative, recognition = learner.models(state)
    estimator, num_samples = learner.row_bound
    if estimator is not importance:  # whose number of draws is part of the bound
        num_samples = max(num_samples, min(MAX_DRAWS, -(-JUDGED_DRAWS // len(rows))))
    terms = bound_terms(generative, recognition, source, rows, key, estimator, num_samples)
    return {f"validation_{name}": float(values.mean()) for name, values in _columns(terms).items()}


def _advance(now: Position, chunk: Chunk, noise_key, learner, clock) -> Position:
    """Return the position after a chunk, with a smaller learning rate if the present one made a number none."""
    while True:
        try:
            state, report = safe_chunk(now.state, chunk, noise_key, now.steps, learner=learner)
            return now.after(chunk, state, report, clock())
        except DivergedError as error:
            first = diagnose(error, learner, now.state, chunk, noise_key, now.steps)
            if now.halvings == MAX_HALVINGS or not hasattr(now.state, "learning_rate"):
                raise _with_advice(first, now) from None
            now = now.with_half_the_step()
            rate = float(now.state.learning_rate)
            message = f"{first} Went back to step {now.steps} and halved the learning rate, to {rate:.3g}."
            warnings.warn(message, RuntimeWarning, stacklevel=5)


def _with_advice(error, now):
    tried = f" The learning rate was halved {now.halvings} times, in vain." if now.halvings else ""
    error.args = (
        f"{error}{tried} Lower the learning_rate, or rescale the data to a standard deviation near 1; if one row is "
        "named, look at it.",
    )
    return error


def _report_of_a_step(learner, state, feed, noise_key):
    """Return the form of what a step reports."""
    source, _ = feed.first()

    def one_step():
        noise = learner.draw_noise(state, noise_key, source.read(0), (1, 1))
        batch, places = source.read(jnp.zeros(1, int)), jnp.zeros(1, int)
        return learner.step(state, batch, jax.tree.map(lambda n: n[0], noise), places)[1]

    return jax.eval_shape(one_step)


def _repeated(report, steps):
    """Return a report of the form that a chunk of so many steps gives; its numbers play no part."""
    return jax.tree.map(lambda leaf: np.zeros((steps, *leaf.shape), leaf.dtype), report)


def _columns(report):
    """Return what a report holds by name; a bound may have no terms."""
    return {name: values for name, values in report._asdict().items() if values is not None}


def safe_chunk(state, chunk, noise_key, first_step, *, learner):
    """Run a chunk on a copy, so that what was learned so far is safe from bad numbers and from Ctrl-C."""
    number, plan, *data, _ = chunk
    after, info = run_chunk(copy_state(state), *data, noise_key, number, learner=learner, plan=plan)
    report = jax.tree.map(np.asarray, info)
    check_finite(report, after, first_step)
    return after, report


@partial(jax.jit, static_argnames=("learner", "plan"), donate_argnames=("state",), compiler_options=_COMPILER_OPTIONS)
def run_chunk(state, source, rows, order, noise_key, number, *, learner, plan):
    """Scan the steps of one chunk; see :func:`aevb.training.chunk_steps.chunk_steps`."""
    inputs, step = chunk_steps(state, source, rows, order, noise_key, number, learner=learner, plan=plan)
    return lax.scan(step, state, inputs)


def copy_state(state):
    """Return a state of its own memory, to be given away."""
    return jax.device_put(state, may_alias=False)  # a program that copies would have to be compiled
