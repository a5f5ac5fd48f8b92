"""The interface of a learner: a value with pure methods, and class attributes that describe its capabilities."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

from jax import Array

from aevb.estimators import Terms


class LearnerState(NamedTuple):
    """Everything that a step changes, and the constants that it reads."""

    parameters: Any
    constants: Any
    optimizer_state: Any
    learning_rate: Array
    memory: Any = ()  # anything else that persists between steps
    average: Any = ()  # of the parameters, see :mod:`aevb.learners.averaging`; empty if there is none


StepInfo = Terms  # what a step reports: averages over the minibatch, in nats per datapoint


class RowBound(NamedTuple):
    """How the lower bound of single rows is estimated."""

    estimator: Callable
    num_samples: int


class Learner(Protocol):
    """What the training loop requires of a learner."""

    needs_encoder: ClassVar[bool]  # whether it learns a network that computes q(z|x)

    @property
    def row_bound(self) -> RowBound | None:
        """How held-out rows are evaluated, and bad ones found; None if single rows have no bound."""
        ...

    def init(self, models, learning_rate: float, key: Array) -> LearnerState:
        """Return the initial state for the pair (generative, recognition)."""
        ...

    def models(self, state: LearnerState) -> tuple:
        """Return the models of a state."""
        ...

    def draw_noise(self, state: LearnerState, key: Array, x: Array, shape: tuple[int, ...]) -> Any:
        """Draw the noise of steps of this shape, (..., M), for datapoints like x."""
        ...

    def step(self, state: LearnerState, batch: Array, noise: Any, places: Array) -> tuple[LearnerState, NamedTuple]:
        """Learn from one minibatch (M, ...); `places` are the indices of its training rows.

        The first field of the report is the objective, in nats per datapoint.
        """
        ...

    def log_parameter_prior(self, state: LearnerState) -> Array | float:
        """Return the contribution of the prior on the parameters to the objective of all data, up to a constant."""
        ...


class Capabilities(Protocol):
    """Class attributes that describe a learner of latent-variable models.

    `VAE`, reports and pages use these attributes, never the name of a learner.
    """

    title: ClassVar[str]  # its name in text
    argument: ClassVar[str]  # the argument of `VAE` that selects it
    estimators: ClassVar[tuple[str, ...]]  # names of the estimators that it accepts
    needs_encoder: ClassVar[bool]  # whether it learns a network that computes q(z|x)
    has_bound: ClassVar[bool]  # whether there is a lower bound of log p(x) for any x
    keeps_rows: ClassVar[bool]  # whether it stores something for each training row, to improve it at the next visit
    needs_num_data: ClassVar[bool]  # whether it needs to know N
    needs_real_latents: ClassVar[bool]  # whether the prior's support must be all real vectors
    has_weight_posterior: ClassVar[bool]  # whether the decoder's weights are random variables
    follows_estimator: ClassVar[bool]  # whether a step ascends the estimator of single rows, and nothing else
    can_anneal: ClassVar[bool]  # whether the KL term can have a smaller weight at first
    can_share: ClassVar[bool]  # whether several devices can compute the rows of a step

    @classmethod
    def prepare(cls, generative: Any, recognition: Any, posterior: str, latent_dim: int) -> tuple[Any, Any]:
        """Return the pair that it learns, made from the standard models with their initial values.

        Args:
            generative: p(z) p(x|z).
            recognition: q(z|x).
            posterior: The family of q(z|x), a key of :data:`aevb.models.POSTERIORS`.
            latent_dim: J.
        """
        ...
