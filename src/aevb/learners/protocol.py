"""The learner protocol: a value with pure methods, and class attributes that describe its capabilities."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

from jax import Array

from aevb.estimators import Terms


class LearnerState(NamedTuple):
    """Everything that a step changes, and the constants it uses."""

    parameters: Any
    constants: Any
    optimizer_state: Any
    learning_rate: Array
    memory: Any = ()  # whatever else a learner keeps from step to step


StepInfo = Terms  # what a step reports: averages over the minibatch, in nats per datapoint


class RowBound(NamedTuple):
    """How the lower bound on single rows is estimated."""

    estimator: Callable
    num_samples: int


class Learner(Protocol):
    """What the training loop needs from a learner."""

    needs_encoder: ClassVar[bool]  # whether it learns a network for q(z|x)

    @property
    def row_bound(self) -> RowBound | None:
        """How held-out rows are evaluated and bad rows found; None if single rows have no bound."""
        ...

    def init(self, models, learning_rate: float, key: Array) -> LearnerState:
        """Return the initial state for the pair (generative, recognition)."""
        ...

    def models(self, state: LearnerState) -> tuple:
        """Return the models of a state."""
        ...

    def draw_noise(self, state: LearnerState, key: Array, x: Array, shape: tuple[int, ...]) -> Any:
        """Draw the randomness of steps of this shape, (..., M), for datapoints like x."""
        ...

    def step(self, state: LearnerState, batch: Array, noise: Any, places: Array) -> tuple[LearnerState, NamedTuple]:
        """Learn from one minibatch (M, ...) with these row indices in the training data.

        The first field of the report is the maximized value, in nats per datapoint.
        """
        ...

    def log_parameter_prior(self, state: LearnerState) -> Array | float:
        """Return what the prior on the parameters adds to the objective of all data, up to a constant."""
        ...


class Capabilities(Protocol):
    """Class attributes that describe a learner of latent-variable models.

    `VAE`, reports and pages use these instead of checking for a learner by name.
    """

    title: ClassVar[str]  # name for people
    argument: ClassVar[str]  # the argument of `VAE` that selects it
    estimators: ClassVar[tuple[str, ...]]  # names of the estimators that it accepts
    needs_encoder: ClassVar[bool]  # whether it learns a network for q(z|x)
    has_bound: ClassVar[bool]  # whether there is a lower bound on log p(x) for any x
    keeps_rows: ClassVar[bool]  # whether it stores something for each training row between visits
    needs_num_data: ClassVar[bool]  # whether it needs to know N
    needs_real_latents: ClassVar[bool]  # whether the prior's support has to be all real vectors
    has_weight_posterior: ClassVar[bool]  # whether the decoder's weights are random variables

    @classmethod
    def prepare(cls, generative: Any, recognition: Any, posterior: str, latent_dim: int) -> tuple[Any, Any]:
        """Return the pair that it learns, from the standard models with their initial values.

        Args:
            generative: p(z) p(x|z).
            recognition: q(z|x).
            posterior: The family of q(z|x), a key of :data:`aevb.models.POSTERIORS`.
            latent_dim: J.
        """
        ...
