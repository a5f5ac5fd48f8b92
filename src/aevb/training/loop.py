"""The compiled training loop: each chunk of steps is one scan on donated state.

Python runs once per chunk, to update the progress bar and to detect Ctrl-C, NaN or infinity, and once per epoch, to
record history and to check convergence. The order of the data is a function of (seed, epoch), and the noise is a
function of (seed, chunk): a run gives the same result wherever it is interrupted and resumed. A feed provides the data
of the chunks, see :mod:`aevb.training.feed`; the compiled program is the same for all feeds.

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

from aevb.estimators import Terms, importance
from aevb.training.budget import Patience
from aevb.training.checkpoint import Checkpoints, SaveError
from aevb.training.chunk_steps import chunk_steps
from aevb.training.diagnosis import DivergedError, check_finite, diagnose
from aevb.training.evaluation import bound_terms
from aevb.training.feed import Chunk, Feed, FeedError, Resident
from aevb.training.position import Position
from aevb.training.progress import Progress
from aevb.training.source import Source

JUDGED_DRAWS, MAX_DRAWS = 1000, 16  # draws of z: at least over all held-out rows, and at most per row
MAX_HALVINGS = 5  # of the learning rate, when a number becomes NaN or infinite
_COMPILER_OPTIONS = {
    # Saves a copy of each large weight matrix in every step of the scan (seen in the compiled program).
    "xla_cpu_copy_insertion_use_region_analysis": True,
    # Use wide registers for the optimizer's passes over memory where available (saves 7% of a step, measured).
    "xla_cpu_prefer_vector_width": 512,
}


@dataclass
class Trained:
    """The result of training."""

    state: Any
    history: list[dict] = field(default_factory=list)
    stopped_because: str = "max_epochs"
    error: BaseException | None = None  # an error of the data or the disk after training had begun
    halvings: int = 0  # of the learning rate
    best_bound: float | None = None  # of held-out rows
    best_path: tuple[int, ...] = ()  # rows of the history up to the best state, by learning rate
    refit_epochs: int | None = None  # of the second pass, over all rows; None if there was none


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
    """Run a learner on rows on the device, until its held-out bound has converged, or for `max_epochs`.

    Args:
        learner: See :class:`aevb.learners.Learner`.
        state: The initial state; it is not changed.
        source: The data.
        train_rows: Indices of the training rows.
        key: Random key of the run.
        batch_size: M.
        max_epochs: Maximum number of passes through the training rows.
        validation_rows: Indices of the held-out rows, whose bound decides convergence; None for none.
        patience: Epochs without a better held-out bound before the run ends; the best state is then returned.
        progress: Whether to show a progress bar.
        callback: Called with each epoch's row of the history.

    Returns:
        The state (the best one if there are validation rows), the history (one row per epoch) and why it stopped.

    Raises:
        FloatingPointError: NaN or infinity in the first chunk; in a later one, the run ends with a warning.

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
    progress: bool | None = False,
    callback: Callable[[dict], None] | None = None,
    checkpoints: Checkpoints | None = None,
) -> Trained:
    """Run a learner on the chunks of a feed; otherwise like :func:`train`.

    If a number becomes NaN or infinite, the run returns to the state before that chunk, halves the learning rate and
    tries again, up to five times in all. If the data or the disk fail after training has begun, the state so far is
    returned, with the error.

    Args:
        learner: See :class:`aevb.learners.Learner`.
        state: The initial state; it is not changed.
        feed: The data.
        key: Random key of the run.
        max_epochs: Maximum number of passes through the training rows.
        patience: Rows of the history without a better held-out bound before the run ends, or a
            :class:`~aevb.training.budget.Patience`; the best state is then returned.
        progress: Whether to show a progress bar; None to not even report an interruption.
        callback: Called with each epoch's row of the history.
        checkpoints: Where the run is saved, and from where it resumes.

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
        if now.history and now.samples > (feed.samples(max_epochs) or now.samples):
            epochs = now.history[-1]["epoch"]
            message = f"max_epochs={max_epochs}: the saved run has {epochs} epochs already, and is not changed."
            warnings.warn(message, UserWarning, stacklevel=4)
    if judge is not None and patience.judges_start and not now.samples:
        now = now.judged(judge(now.state)["validation_lower_bound"])
    begin = time.perf_counter() - now.seconds
    epoch, stopped_because, failure, can_save = 1, feed.end, None, True

    def record(now, epoch):
        row = {"epoch": epoch, "samples": now.samples}
        averages = jax.tree.map(lambda *values: float(np.mean(np.concatenate(values))), *now.reports)
        row |= _columns(averages)  # the bound and its terms, or the learner's own metrics
        if judge is not None:
            row |= judge(now.state)
            if not np.isfinite(row["validation_lower_bound"]):
                message = (
                    f"The held-out bound of epoch {epoch} is not finite: check the held-out rows for extreme values."
                )
                warnings.warn(message, RuntimeWarning, stacklevel=5)
        return now.recorded(row | {"seconds": time.perf_counter() - begin})

    bar = Progress(progress, total=feed.samples(max_epochs), done=now.samples)
    segments = feed.segments(order_key, max_epochs, now.next_chunk)
    try:
        with bar, closing(segments):  # which ends the thread that reads ahead; Ctrl-C may arrive here too
            for epoch, chunks in segments:
                last = -1
                for chunk in chunks:
                    last = chunk.number
                    if last < now.next_chunk:
                        continue  # already done in the checkpoint
                    now = _advance(now, chunk, noise_key, learner, lambda: time.perf_counter() - begin)
                    report = now.reports[-1]
                    bar.advance(chunk.plan.samples_per_chunk, report._fields[0], report[0].mean())
                    if checkpoints is not None:
                        checkpoints.offer(now)
                if now.reports and last + 1 == now.next_chunk:  # not for an epoch that is skipped
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
            bar.note(f"Interrupted: the model was trained on {now.samples:,} samples so far and is kept.")
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
            stopped_because = "interrupted"  # the model is kept, and the previous checkpoint is intact
        except SaveError as error:
            stopped_because, failure = "failed", error.cause
    if now.reports and not now.history and stopped_because in ("interrupted", "failed", "diverged"):
        now = record(now, epoch)  # the finished part of an epoch, which may take days
    best = now.state if now.best_state is None else now.best_state
    path = tuple(now.best_path) if now.best_bound is not None else (*now.path, now.rows_since)
    return Trained(best, list(now.history), stopped_because, failure, now.halvings, now.best_bound, path)


def _judge(learner, source, rows, key, state) -> dict[str, float]:
    """Return the average bound of held-out rows and its terms, by name."""
    terms = held_out_terms(learner, source, rows, key, state)
    return {f"validation_{name}": float(values.mean()) for name, values in _columns(terms).items()}


def held_out_terms(learner, source: Source, rows: np.ndarray, key: Array, state) -> Terms:
    """Return the bound of each held-out row and its terms, (n,); few rows get more draws of z, to reduce the noise."""
    generative, recognition = learner.models(state)
    estimator, num_samples = learner.row_bound
    if estimator is not importance:  # for which the number of draws is part of the bound
        num_samples = max(num_samples, min(MAX_DRAWS, -(-JUDGED_DRAWS // len(rows))))
    return bound_terms(generative, recognition, source, rows, key, estimator, num_samples)


def _advance(now: Position, chunk: Chunk, noise_key, learner, clock) -> Position:
    """Return the position after a chunk, with a smaller learning rate if the current one led to NaN or infinity."""
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
            message = f"{first} Returned to step {now.steps} and halved the learning rate, to {rate:.3g}."
            warnings.warn(message, RuntimeWarning, stacklevel=5)


def _with_advice(error, now):
    tried = f" Halving the learning rate {now.halvings} times did not help." if now.halvings else ""
    error.args = (
        f"{error}{tried} Lower the learning_rate, or rescale the data to a standard deviation near 1; if a row is "
        "named, check it.",
    )
    return error


def _report_of_a_step(learner, state, feed, noise_key):
    """Return the structure of a step's report."""
    source, _ = feed.first()

    def one_step():
        noise = learner.draw_noise(state, noise_key, source.read(0), (1, 1))
        batch, places = source.read(jnp.zeros(1, int)), jnp.zeros(1, int)
        return learner.step(state, batch, jax.tree.map(lambda n: n[0], noise), places)[1]

    return jax.eval_shape(one_step)


def _repeated(report, steps):
    """Return a report with the structure of a chunk of this many steps; its values are ignored."""
    return jax.tree.map(lambda leaf: np.zeros((steps, *leaf.shape), leaf.dtype), report)


def _columns(report):
    """Return the entries of a report by name; a bound may have no terms."""
    return {name: values for name, values in report._asdict().items() if values is not None}


def safe_chunk(state, chunk, noise_key, first_step, *, learner):
    """Run a chunk on a copy, so that NaN, infinity or Ctrl-C do not affect the state so far."""
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
    """Return a copy of a state that can be donated."""
    return jax.device_put(state, may_alias=False)  # a copying program would have to be compiled
