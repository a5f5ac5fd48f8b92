"""From the arguments of `SequenceVAE` to initial models and a learner."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from aevb.estimators import ESTIMATORS
from aevb.fitted.steps import optimizer_of
from aevb.learners import AEVB
from aevb.learners.carrying import Carrying
from aevb.learners.protocol import LearnerState
from aevb.models import split
from aevb.models.column import Column
from aevb.models.linear_order import state_dim
from aevb.models.linear_states import can_start_linear, fit_linear_states, start_from_linear_states
from aevb.models.sequence import SequenceShape, sequence_models, start_sequence_models
from aevb.settings import Arguments
from aevb.training.budget import prior_precision
from aevb.training.source import Rows

RECOGNITION_FIRST = 500  # steps, after a start from a linear model
STEPS_OF_START = 20_000  # of the sequences that the linear model is fitted to


@final
@dataclass(frozen=True, eq=False)
class SequenceDesign:
    """What the models of sequences are built from.

    Args:
        arguments: The arguments of the estimator.
        format: The format of the sequences.
        latent_dim: J.
    """

    arguments: Arguments
    format: Any
    latent_dim: int

    @classmethod
    def of(cls, arguments: Arguments, likelihood: str, format: Any, latent_dim: int, *_: Any) -> "SequenceDesign":
        """Return the design for data of this format; the likelihoods are those of its columns."""
        return cls(arguments, format, latent_dim)

    @property
    def own_transition(self) -> Any:
        """The user's own transition; None if it is one by name."""
        return None if isinstance(self.arguments.transition, str) else self.arguments.transition

    @property
    def shape(self) -> SequenceShape:
        """The sizes and parts of the models."""
        a = self.arguments
        return SequenceShape(
            self.latent_dim,
            self.format.num_inputs,
            a.hidden_for(is_table=False),
            a.transition,
            _widths(a.transition_hidden),
            a.recognition,
            a.network,
            a.recurrent_size,
            a.activation,
            a.autoregressive,
        )

    def models(self, key: Array, rows: Rows | None = None) -> tuple[Any, Any]:
        """Return the pair that is learned, with initial values.

        Args:
            key: Random key.
            rows: The training sequences, for a start from the linear model that fits them best.
        """
        columns, shape = self.format.model_columns, self.shape
        models = start_sequence_models(sequence_models(columns, shape), key, self.own_transition)
        if rows is None or not self.starts_linear:
            return models
        points = rows.source.take(rows.numbers[: max(STEPS_OF_START // rows.source.rows.values.shape[1], 1)])
        return start_from_linear_states(models, fit_linear_states(columns, shape, points, key))

    @property
    def starts_linear(self) -> bool:
        """Whether learning starts from a linear model."""
        return bool(self.arguments.linear_start) and can_start_linear(self.format.model_columns, self.shape)

    def start(
        self,
        models: tuple,
        num_data: float | None,
        learning_rate: float | None,
        key: Array,
        num_windows: int = 0,
        recognition_steps: int = RECOGNITION_FIRST,
    ) -> tuple[AEVB | Carrying, LearnerState]:
        """Return the learner and its initial state; of windows of sequences, if there are some.

        A linear start stays as it is for `recognition_steps`, see :func:`recognition_first`.
        """
        a, optimizer = self.arguments, optimizer_of(self.arguments)
        learner = AEVB(
            skeleton=split(models).skeleton,
            num_data=1 if num_data is None else num_data,
            estimator=ESTIMATORS[a.estimator],
            num_samples=a.num_samples,
            optimizer=recognition_first(optimizer, recognition_steps) if self.starts_linear else optimizer,
            parameter_prior=prior_precision(num_data, a.parameter_prior, is_standardized=False),
            annealing=a.kl_annealing,
            dropout=float(a.option("dropout", 0.0)),
        )
        learner = Carrying(learner, num_windows) if num_windows else learner
        return learner, learner.init(models, learning_rate or 0.0, key)


class FirstState(NamedTuple):
    """The state of an optimizer that moves the recognition model first."""

    num_steps: Array
    state: Any


@cache  # one object for the same optimizer, so that a compiled program is reused
def recognition_first(optimizer: optax.GradientTransformation, num_steps: int) -> optax.GradientTransformation:
    """Return an optimizer of pairs that leaves the generative model where it starts for the first steps.

    A good generative model would otherwise move away, towards a posterior that is not learned yet.
    """

    def init(params):
        return FirstState(jnp.zeros((), jnp.int32), optimizer.init(params))

    def update(updates, state: Any, params=None):
        found: Any = optimizer.update(updates, state.state, params)
        (generative, recognition), inner = found
        moves = (state.num_steps >= num_steps).astype(jnp.result_type(float))
        generative = jax.tree.map(lambda leaf: moves * leaf, generative)
        return (generative, recognition), FirstState(state.num_steps + 1, inner)

    return optax.GradientTransformation(init, update)


FEW_VALUES, SMALLEST, LARGEST = 2_000, 2, 16
VALUES_PER_WEIGHT = 5  # of a linear transition and emission, which decides J for few values
FEW_SEQUENCES = 10
SIZES = ("latent_dim", "transition", "recurrent_size", "hidden", "linear_start")


def sized(arguments: Arguments, encoded: Any, columns: Sequence[Column]) -> Arguments:
    """Return the arguments with sizes for these data where they are None.

    Args:
        arguments: The arguments of the estimator.
        encoded: The sequences, see :class:`aevb.data.encoded_sequences.Encoded`.
        columns: Those that are learned.

    Example:
        >>> from aevb.data.encoded_sequences import Encoded
        >>> walk = np.random.default_rng(0).normal(size=(5_000, 1)).cumsum(axis=0)
        >>> some = [Encoded(np.array([n]), [walk[:n]], [np.ones(n)]) for n in (50, 5_000)]
        >>> found = [sized(Arguments(transition=None), x, [Column("x", "gaussian")]) for x in some]
        >>> [(a.latent_dim, a.transition, a.recurrent_size) for a in found]
        [(2, 'linear', 32), (2, 'gated', 100)]
    """
    num_sequences, num_values = len(encoded.lengths), sum(int(np.isfinite(rows).sum()) for rows in encoded.values)
    is_few = num_values < FEW_VALUES
    J = LARGEST
    while is_few and J > SMALLEST and VALUES_PER_WEIGHT * J * (J + len(columns) + 2) > num_values:
        J -= 1
    if arguments.latent_dim is None and num_sequences < FEW_SEQUENCES and all(c.family == "gaussian" for c in columns):
        J = min(J, max(state_dim(encoded.values, encoded.controls), SMALLEST))
    width = 32 if is_few else 100
    chosen = {"latent_dim": J, "transition": "linear" if is_few else "gated", "recurrent_size": width}
    chosen |= {"hidden": (width,), "linear_start": num_sequences < FEW_SEQUENCES}
    return given_sizes(arguments, Arguments(**chosen))


def given_sizes(arguments: Arguments, chosen: Arguments) -> Arguments:
    """Return the arguments with the sizes of others where they are None."""
    names = [name for name in SIZES if arguments.option(name, None) is None]
    return arguments.replaced(**{name: chosen.option(name, None) for name in names})


def _widths(hidden):
    try:
        return tuple(int(width) for width in hidden)
    except TypeError:
        return (int(hidden),)
