"""The position of a run: everything needed to resume it."""

import math
from dataclasses import dataclass, replace
from typing import Any

REDUCTION = 0.25  # of the learning rate, when the held-out bound stops improving


@dataclass(frozen=True)
class Position:
    """The state of a run between two chunks.

    It is one value instead of many variables, so that it is consistent after an interruption, after a failure and in a
    checkpoint.

    Args:
        state: State of the learner.
        next_chunk: Number of the next chunk.
        samples: Datapoints seen so far.
        steps: Steps done so far.
        seconds: Time spent so far.
        reports: Reports of the chunks of this epoch.
        history: Rows of the finished epochs.
        best_state: The state with the best held-out bound; None if nothing is held out.
        best_bound: That bound.
        epochs_since: Epochs since then.
        halvings: How often the learning rate was halved because of NaN or infinity.
        path: For each earlier learning rate, the rows of the history up to where the current one began.
        best_path: The same for the best state, including its own learning rate.
    """

    state: Any
    next_chunk: int = 0
    samples: int = 0
    steps: int = 0
    seconds: float = 0.0
    reports: tuple = ()
    history: tuple[dict, ...] = ()
    best_state: Any = None
    best_bound: float | None = None
    epochs_since: int = 0
    halvings: int = 0
    path: tuple[int, ...] = ()
    best_path: tuple[int, ...] = ()
    rows_since: int = 0  # rows of the history with the current learning rate

    def after(self, chunk, state, report, seconds: float) -> "Position":
        """Return the position after a chunk."""
        return replace(
            self,
            state=state,
            next_chunk=chunk.number + 1,
            samples=self.samples + chunk.plan.samples_per_chunk,
            steps=self.steps + chunk.plan.num_steps,
            seconds=seconds,
            reports=(*self.reports, report),
        )

    def recorded(self, row: dict) -> "Position":
        """Return the position after adding a row to the history; it updates the best state."""
        now = replace(self, history=(*self.history, row), reports=(), rows_since=self.rows_since + 1)
        bound = row.get("validation_lower_bound")
        if bound is None:
            return now
        if math.isfinite(bound) and (self.best_bound is None or bound > self.best_bound):
            best = {"best_state": self.state, "best_bound": bound, "best_path": (*self.path, now.rows_since)}
            return replace(now, **best, epochs_since=0)
        return replace(now, epochs_since=self.epochs_since + 1)

    @property
    def reductions(self) -> int:
        """How often the learning rate was reduced because the held-out bound stopped improving."""
        return len(self.path)

    def judged(self, bound: float) -> "Position":
        """Return the start of a run with its held-out bound as the best so far."""
        return replace(self, best_state=self.state, best_bound=bound) if math.isfinite(bound) else self

    def with_reduced_step(self) -> "Position":
        """Return to the best state, with a smaller learning rate."""
        best = self.best_state
        state = best._replace(learning_rate=self.state.learning_rate * REDUCTION)
        path = (*self.best_path, *[0] * (self.reductions + 1 - len(self.best_path)))
        return replace(self, state=state, path=path, rows_since=0, epochs_since=0)

    def with_half_the_step(self) -> "Position":
        """Return the position with half the learning rate."""
        state = self.state._replace(learning_rate=self.state.learning_rate / 2)
        return replace(self, state=state, halvings=self.halvings + 1)
