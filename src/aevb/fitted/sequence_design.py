"""From the arguments of `SequenceVAE` to initial models and a learner."""

from dataclasses import dataclass
from typing import Any, final

from jax import Array

from aevb.estimators import ESTIMATORS
from aevb.fitted.design import optimizer_of
from aevb.learners import AEVB
from aevb.learners.protocol import LearnerState
from aevb.models import split
from aevb.models.sequence import SequenceShape, sequence_models, start_sequence_models
from aevb.settings import Arguments
from aevb.training.budget import prior_precision


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

    def models(self, key: Array) -> tuple[Any, Any]:
        """Return the pair that is learned, with initial values."""
        a = self.arguments
        shape = SequenceShape(
            self.latent_dim,
            self.format.num_inputs,
            a.hidden_for(is_table=False),
            a.transition,
            _widths(a.transition_hidden),
            a.recognition,
            a.network,
            a.recurrent_size,
            a.activation,
        )
        return start_sequence_models(sequence_models(self.format.model_columns, shape), key, self.own_transition)

    def start(
        self, models: tuple, num_data: float | None, learning_rate: float | None, key: Array
    ) -> tuple[AEVB, LearnerState]:
        """Return the learner and its initial state."""
        a = self.arguments
        learner = AEVB(
            skeleton=split(models).skeleton,
            num_data=1 if num_data is None else num_data,
            estimator=ESTIMATORS[a.estimator],
            num_samples=a.num_samples,
            optimizer=optimizer_of(a),
            parameter_prior=prior_precision(num_data, a.parameter_prior, is_standardized=False),
            annealing=a.kl_annealing,
        )
        return learner, learner.init(models, learning_rate or 0.0, key)


def _widths(hidden):
    try:
        return tuple(int(width) for width in hidden)
    except TypeError:
        return (int(hidden),)
