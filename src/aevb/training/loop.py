"""The compiled training loop: each chunk of steps is one scan on donated state, or a program for each step.

Python runs once per chunk, to update the progress bar and to detect Ctrl-C, NaN or infinity, and once per epoch, to
record history and to check convergence. The order of the data is a function of (seed, epoch), and the noise is a
function of (seed, chunk): a run gives the same result wherever it is interrupted and resumed. A feed provides the data
of the chunks, see :mod:`aevb.training.feed`; the compiled program is the same for all feeds.

Paper: Algorithm 1.
"""

import time
import warnings
from collections.abc import Callable
from contextlib import closing
from functools import cache, partial
from typing import NamedTuple

import jax
import numpy as np
from jax import Array, lax

from aevb.arrays import several_keys
from aevb.parallel import PeerFailedError, group
from aevb.training.budget import Patience
from aevb.training.checkpoint import Checkpoints, SaveError
from aevb.training.chunk_steps import COMPILER_OPTIONS, chunk_steps, has_slow_loop, one_by_one
from aevb.training.diagnosis import DivergedError, check_finite, diagnose
from aevb.training.evaluation import batches_of
from aevb.training.feed import Chunk, Feed
from aevb.training.held_out import judge
from aevb.training.over_devices import called, on_one_device, over_devices, whole
from aevb.training.position import Position
from aevb.training.progress import Progress
from aevb.training.reading_ahead import FeedError
from aevb.training.reports import averages, repeated, report_of_a_step
from aevb.training.result import Ending, Trained
from aevb.training.sharded import whole_state

MAX_HALVINGS = 5  # of the learning rate, when a number becomes NaN or infinite


class Watching(NamedTuple):
    """How a run is watched."""

    progress: bool | None = False  # whether to show a progress bar; None to not even report an interruption
    callback: Callable[[dict], None] | None = None  # called with each epoch's row of the history
    what: str = "learning"  # in a word or two, beside the progress bar


class Run:
    """A run of a learner: `now` is its position, replaced as a whole, so that it is consistent whatever ends the run.

    Args:
        learner: See :class:`aevb.learners.Learner`.
        state: The initial state.
        feed: The data.
        key: Random key of the run.
        max_epochs: Maximum number of passes through the training rows.
        patience: How long it continues without a better held-out bound.
        watching: How it is watched.
        checkpoints: Where it is saved; None for nowhere.
    """

    def __init__(
        self,
        learner,
        state,
        feed: Feed,
        key: Array,
        max_epochs: int,
        patience: Patience,
        watching: Watching,
        checkpoints: Checkpoints | None,
    ):
        self.now, self._epoch, self._began = Position(state), 1, 0.0
        self._learner, self._feed, self._checkpoints = over_devices(learner), feed, checkpoints
        self._max_epochs, self._patience, self._watching = max_epochs, patience, watching
        self._order_key, self._noise_key, held_out_key = several_keys(key, 3)
        held_out = None if feed.held_out is None else batches_of(feed.held_out)
        self._judge = None if held_out is None else partial(judge, learner, held_out, held_out_key)

    def resume(self) -> None:
        """Return to the newest checkpoint, or judge the start of a new run if its state can be the best."""
        if self._checkpoints is not None:
            step = cache(
                lambda: report_of_a_step(on_one_device(self._learner), self.now.state, self._feed, self._noise_key)
            )
            self.now = self._checkpoints.newest(self.now, lambda num_steps: repeated(step(), num_steps))
            if self.now.history and self.now.samples > (self._feed.samples(self._max_epochs) or self.now.samples):
                epochs = self.now.history[-1]["epoch"]
                message = (
                    f"max_epochs={self._max_epochs}: the saved run has {epochs} epochs already, and is not changed."
                )
                warnings.warn(message, UserWarning, stacklevel=4)
        if self._judge is not None and self._patience.judges_start and not self.now.samples:
            self.now = self.now.judged(self._judge_now()["validation_lower_bound"])
        self._began = time.perf_counter() - self.now.seconds

    def _judge_now(self):
        """Return the bound of the held-out rows, with all parameters in this process."""
        assert self._judge is not None
        state = self.now.state
        return self._judge(state._replace(parameters=whole_state(state.parameters), average=whole_state(state.average)))

    def to_its_end(self) -> Ending:
        """Train until the data, the patience, the user or a failure ends the run.

        Raises:
            FloatingPointError: NaN or infinity before any chunk succeeded; likewise an error of the data or the disk.
        """
        total, watching = self._feed.samples(self._max_epochs), self._watching
        bar = Progress(watching.progress, total=total, done=self.now.samples, what=watching.what)
        segments = self._feed.segments(self._order_key, self._max_epochs, self.now.next_chunk)
        try:
            with bar, closing(segments):  # which ends the thread that reads ahead; Ctrl-C may arrive here too
                reason = self._run_segments(segments, bar)
                bar.end()
                return Ending(reason)
        except KeyboardInterrupt:
            if self.now.samples:
                bar.note(f"Interrupted: the model was trained on {self.now.samples:,} samples so far and is kept.")
            return Ending("interrupted")
        except (FeedError, SaveError, PeerFailedError) as error:
            if not self.now.samples:
                raise error.cause from None
            return Ending("failed", error.cause, can_save=not isinstance(error, SaveError))
        except DivergedError as error:
            if not self.now.samples:
                raise
            message = f"{error} Training stopped at the last good state before that step."
            warnings.warn(message, RuntimeWarning, stacklevel=4)
            return Ending("diverged")

    def _run_segments(self, segments, bar) -> str:
        """Run the segments, each a row of the history; return why they ended."""
        patience = self._patience
        for epoch, chunks in segments:
            self._epoch = epoch
            last = self._run_chunks(chunks, bar)
            if self.now.reports and last + 1 == self.now.next_chunk:  # not for an epoch that is skipped
                self._record()
                if self._watching.callback is not None:
                    self._watching.callback(self.now.history[-1])
            if patience.is_exhausted(self.now.epochs_since, len(self.now.history), self.now.steps):
                if self.now.reductions >= patience.num_reductions or self.now.best_state is None:
                    return "converged"
                self.now = self.now.with_reduced_step()
            elif self.now.best_state is not None and patience.is_due(self.now.reductions, len(self.now.history)):
                self.now = self.now.with_reduced_step()
        return self._feed.end

    def _run_chunks(self, chunks, bar) -> int:
        """Run the chunks of a segment that are not in the checkpoint; return the number of the last chunk."""
        last = -1
        for chunk in group().in_step(chunks):
            last = chunk.number
            if last < self.now.next_chunk:
                continue  # already done in the checkpoint
            self.now = _advance(self.now, chunk, self._noise_key, self._learner, self._seconds)
            report = self.now.reports[-1]
            bar.advance(chunk.plan.samples_per_chunk, report._fields[0], report[0].mean())
            if self._checkpoints is not None:
                with group().deferred():
                    self._checkpoints.offer(self.now)
        return last

    def _record(self) -> None:
        """Add a row to the history: the epoch's averages, and the bound of the held-out rows."""
        row = {"epoch": self._epoch, "samples": self.now.samples, **averages(self.now.reports)}
        if self._judge is not None:
            row |= self._judge_now()
            if not np.isfinite(row["validation_lower_bound"]):
                message = (
                    f"The held-out bound of epoch {self._epoch} is not finite: check the held-out rows for extreme "
                    "values."
                )
                warnings.warn(message, RuntimeWarning, stacklevel=6)
        self.now = self.now.recorded(row | {"seconds": self._seconds()})

    def _seconds(self) -> float:
        return time.perf_counter() - self._began

    def saved(self, ending: Ending) -> Ending:
        """Save the position at the end of the run; return why it ended, which may be that it could not be saved."""
        if self._checkpoints is None or not ending.can_save or not self.now.samples:
            return ending
        try:
            self._checkpoints.save(self.now)
        except KeyboardInterrupt:
            return ending._replace(reason="interrupted")  # the model is kept, and the previous checkpoint is intact
        except SaveError as error:
            return ending._replace(reason="failed", error=error.cause)
        return ending

    def result(self, ending: Ending) -> Trained:
        """Return the best state if there are held-out rows, otherwise the last one, and the history."""
        self._record_unfinished_epoch(ending)
        now = self.now
        best = whole_state(now.state if now.best_state is None else now.best_state)
        path = tuple(now.best_path) if now.best_bound is not None else (*now.path, now.rows_since)
        return Trained(best, list(now.history), ending.reason, ending.error, now.halvings, now.best_bound, path)

    def _record_unfinished_epoch(self, ending):
        if self.now.reports and not self.now.history and ending.is_early:
            self._record()  # the finished part of an epoch, which may take days


def _advance(now: Position, chunk: Chunk, noise_key, learner, clock) -> Position:
    """Return the position after a chunk, with a smaller learning rate if the current one led to NaN or infinity."""
    while True:
        try:
            state, report = safe_chunk(now.state, chunk, noise_key, now.steps, learner=learner)
            return now.after(chunk, state, report, clock())
        except DivergedError as error:
            chunk = chunk._replace(source=whole(chunk.source), names=chunk.names.of_all(chunk.plan.batch_size))
            first = diagnose(error, on_one_device(learner), whole_state(now.state), chunk, noise_key, now.steps)
            if now.halvings == MAX_HALVINGS or not hasattr(now.state, "learning_rate"):
                raise _with_advice(first, now) from None
            now = now.with_half_the_step()
            rate = float(now.state.learning_rate)
            message = f"{first} Returned to step {now.steps} and halved the learning rate, to {rate:.3g}."
            warnings.warn(message, RuntimeWarning, stacklevel=7)


def _with_advice(error, now):
    tried = f" Halving the learning rate {now.halvings} times did not help." if now.halvings else ""
    advice = "Lower the learning_rate, or rescale the data to a standard deviation near 1; if a row is named, check it."
    if error.step == 0 and error.what.endswith("became -inf"):
        advice = (
            "Nothing was learned before it: the model says that such rows are impossible. Check that the decoder's "
            "distribution is one of these data; that of 0 and 1, for instance, is not one of grey levels."
        )
    error.args = (f"{error}{tried} {advice}",)
    return error


def safe_chunk(state, chunk, noise_key, first_step, *, learner):
    """Run a chunk on a copy, so that NaN, infinity or Ctrl-C do not affect the state so far."""
    number, plan, *data, _ = chunk
    after, info = run_steps(copy_state(state), *data, noise_key, number, learner=learner, plan=plan)
    report = jax.tree.map(np.asarray, info)
    check_finite(report, after, first_step)
    return after, report


@partial(jax.jit, static_argnames=("learner", "plan"), donate_argnames=("state",), compiler_options=COMPILER_OPTIONS)
def run_chunk(state, source, rows, order, noise_key, number, *, learner, plan):
    """Scan the steps of one chunk; see :func:`aevb.training.chunk_steps.chunk_steps`."""
    inputs, step = chunk_steps(state, source, rows, order, noise_key, number, learner=learner, plan=plan)
    return lax.scan(step, state, inputs)


_trace = run_chunk.trace


def run_steps(*arguments, learner, plan):
    """Run the steps of one chunk in the fastest way: as one program, or with a program for each step."""
    return called(_in_the_fastest_way, *arguments, learner=learner, plan=plan)


def _in_the_fastest_way(*arguments, **options):
    return (one_by_one if has_slow_loop(_trace, *arguments, **options) else run_chunk)(*arguments, **options)


def copy_state(state):
    """Return a copy of a state that can be donated."""
    if not group().shards_parameters:
        return jax.device_put(state, may_alias=False)  # a copying program would have to be compiled
    return jax.tree.map(lambda leaf: jax.device_put(leaf, getattr(leaf, "sharding", None), may_alias=False), state)
