"""Where a run is: all that it needs to go on from there."""

import math
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Position:
    """A moment between two chunks of a run.

    It is one value, and not many variables, so that an interruption, a failure or a checkpoint finds all of it from the
    same moment.

    Args:
        state: Of the learner.
        next_chunk: Number of the chunk that comes next.
        samples: Datapoints seen so far.
        steps: Steps done so far.
        seconds: Spent so far.
        reports: Of the chunks of this epoch.
        history: Rows of the epochs that are done.
        best_state: With the best held-out bound; None if nothing is held out.
        best_bound: That bound.
        epochs_since: Epochs since then.
        halvings: How often the learning rate was halved.
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
        """Return the position after an epoch's row of the history, with the best state if this is it."""
        now = replace(self, history=(*self.history, row), reports=())
        bound = row.get("validation_lower_bound")
        if bound is None:
            return now
        if math.isfinite(bound) and (self.best_bound is None or bound > self.best_bound):
            return replace(now, best_state=self.state, best_bound=bound, epochs_since=0)
        return replace(now, epochs_since=self.epochs_since + 1)

    def with_half_the_step(self) -> "Position":
        """Return the position with half the learning rate."""
        state = self.state._replace(learning_rate=self.state.learning_rate / 2)
        return replace(self, state=state, halvings=self.halvings + 1)
