"""How the bound of a user-defined model is maximized: steps, minibatches and learning rate."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import optax

from aevb.arguments import check_parameter
from aevb.learners import OPTIMIZERS

STEPS_AT_ONCE = 250  # per row of the history, if there are no minibatches
# The learning rate is constant for a third of the steps and then decays exponentially, so that it passes through the
# right size for variables of every scale. Measured on a regression with known posterior: with minibatches, cosine decay
# leaves three times the error; decay from the first step makes a low-rank posterior's spread a tenth too small.
CONSTANT_SHARE, FINAL_RATE = 1 / 3, 1e-3
LEARNING_RATES = {"flow": 0.005}  # its layers do not recover from the first steps with a larger one
LEARNING_RATE = 0.05


class Schedule(NamedTuple):
    """The steps of a run, in rounds that are the epochs of the training loop."""

    rows: np.ndarray  # of a round; if each step reads all data, these are step numbers
    batch_size: int  # rows per step
    is_whole: bool  # whether each step reads all data
    max_steps: int

    @property
    def steps_per_epoch(self) -> int:
        """Steps per round."""
        return max(len(self.rows) // self.batch_size, 1)

    @property
    def max_epochs(self) -> int:
        """Number of rounds, at least one."""
        return max(round(self.max_steps / self.steps_per_epoch), 1)


@dataclass(frozen=True)
class Optimization:
    """How :func:`~aevb.fit_posterior` maximizes the bound; it takes these as keyword arguments.

    Args:
        batch_size: M; None for all data in each step.
        num_samples: L, draws of the variables per step; None for the best known number.
        optimizer: None for steps in coordinates in which q is N(0, I), whose size decreases until a test finds that
            learning has converged. Or ``"adam"``, ``"adagrad"`` or ``"sgd"``, whose learning rate decays to a
            thousandth over `max_steps`; or an optax transformation with its own rate and schedule. These start at 0,
            whatever the model, and take all steps; your own posteriors and local variables need one, by default Adam.
        learning_rate: Initial learning rate of an optimizer; None for 0.05, or 0.005 for a flow. An optax
            transformation's updates are multiplied by it; None for 1.
        max_steps: Number of steps after which to give up, for each family that is tried; with an optimizer, the number
            of steps, with minibatches at least one pass through the data.
        random_state: Seed, an integer; the same seed gives the same result.
        progress: Whether to show a progress bar.
    """

    batch_size: int | None = None
    num_samples: int | None = None
    optimizer: str | optax.GradientTransformation | None = None
    learning_rate: float | None = None
    max_steps: int = 5000
    random_state: int = 0
    progress: bool = True

    def check(self) -> None:
        """Refuse values that are not allowed."""
        if self.num_samples is not None:
            check_parameter("num_samples", self.num_samples, kind=int, low=1)
        check_parameter("max_steps", self.max_steps, kind=int, low=1)
        if self.optimizer is not None and not isinstance(self.optimizer, optax.GradientTransformation):
            check_parameter("optimizer", self.optimizer, choices=OPTIMIZERS)
        if self.batch_size is not None:
            check_parameter("batch_size", self.batch_size, kind=int, low=1)
        if self.learning_rate is not None:
            check_parameter("learning_rate", self.learning_rate, kind=float, above=0)
        check_parameter("random_state", self.random_state, kind=int, low=0, high=2**32 - 1)

    @property
    def is_plain(self) -> bool:
        """Whether nothing about the steps was chosen, so that they can be taken in whitened coordinates."""
        return self.num_samples is None and self.optimizer is None and self.learning_rate is None

    def schedule(self, num_rows: int) -> Schedule:
        """Return the steps for this many rows; the loop returns to Python at least once per round."""
        steps = min(STEPS_AT_ONCE, self.max_steps)
        if self.batch_size is None or self.batch_size >= num_rows:
            return Schedule(np.arange(steps), 1, True, self.max_steps)
        passes = -(-steps * self.batch_size // num_rows)
        return Schedule(np.tile(np.arange(num_rows), passes), self.batch_size, False, self.max_steps)

    def first_rate(self, posterior) -> float:
        """Return the initial learning rate for a posterior, a family's name or the user's own."""
        if self.learning_rate is not None:
            return self.learning_rate
        if isinstance(self.optimizer, optax.GradientTransformation):
            return 1.0
        return LEARNING_RATES.get(posterior, LEARNING_RATE) if isinstance(posterior, str) else LEARNING_RATE

    def transformation(self, num_steps: int) -> optax.GradientTransformation:
        """Return the optimizer, whose learning rate decays over this many steps unless it is the user's own."""
        if isinstance(self.optimizer, optax.GradientTransformation):
            return self.optimizer
        constant = int(CONSTANT_SHARE * num_steps)
        decay = optax.exponential_decay(1.0, num_steps - constant, FINAL_RATE, transition_begin=constant)
        return optax.chain(OPTIMIZERS[self.optimizer or "adam"], optax.scale_by_schedule(decay))
