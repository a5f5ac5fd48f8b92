"""Sequences: deep Markov models, as an estimator.

Paper: §7.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from aevb.data.frames import is_frame
from aevb.data.sequence_format import Encoded, SequenceFormat
from aevb.data.sequences import read_arguments, read_sequences
from aevb.fitted import FittedModel
from aevb.fitted.model import seed_of
from aevb.fitted.sequence_design import given_sizes
from aevb.settings import SEQUENCE_SETTINGS, with_arguments
from aevb.vae.checks import check_settings
from aevb.vae.conventions import unchanged_on_error
from aevb.vae.fitting import show_columns
from aevb.vae.learning import NAME_ITS_KIND, Watch
from aevb.vae.sequence_fitting import TrainingSequences, fit_sequences, learn_more
from aevb.vae.sequence_tasks import SequenceTasks


@with_arguments(SEQUENCE_SETTINGS)
class SequenceVAE(SequenceTasks):
    r"""A deep Markov model: a state-space model of sequences whose parts are networks.

    .. math:: p(x, z) = p(z_1) \prod_{t=2}^T p(z_t | z_{t-1}, u_t) \prod_{t=1}^T p(x_t | z_t)

    With ``autoregressive=True``, x_t depends on x_{t-1} too, with ``"states"`` z_t as well.

    Sequences may have different lengths, missing entries and missing steps (NaN), irregular times, columns of different
    kinds, inputs u_t at each step (`controls`), and labels or numbers for the whole sequence (`covariates`). They are
    given as a list of arrays (T_i, D); as an array (n, time, D); as an array or a data frame of all steps with
    ``lengths=[...]``, as in hmmlearn; or as a data frame of pandas with an index of two levels, (sequence, time).
    Results have the form in which the sequences were given.

    Args: described in :mod:`aevb.settings`.

    Attributes:
        model_: The fitted model, an immutable :class:`aevb.fitted.FittedModel`.
        history_: One row (a dict) per epoch, or per several epochs of small data; bounds are in nats per sequence.
        stopped_because_: See :class:`aevb.VAE`.

    Example:
        >>> import numpy as np
        >>> from aevb import SequenceVAE
        >>> walks = np.random.default_rng(0).normal(size=(30, 20, 1)).cumsum(axis=1)
        >>> model = SequenceVAE(latent_dim=2, transition="linear", hidden=(), max_epochs=2, progress=False).fit(walks)
        >>> model.transform(walks).shape
        (30, 20, 2)

    Paper: §7.
    """

    def __init__(
        self,
        latent_dim: int | str | Sequence[int] | None = None,
        *,
        likelihood: Any = "auto",
        transition: Any = None,
        recognition: str = "smoother",
        network: str = "gru",
        recurrent_size: int | None = None,
        hidden: int | Sequence[int] | None = None,
        transition_hidden: Any = (100,),
        activation: str = "relu",
        autoregressive: bool | str = False,
        dropout: Any = 0.0,
        linear_start: bool | None = None,
        estimator: str = "sgvb-b",
        num_samples: int = 1,
        kl_annealing: Any = 0,
        batch_size: int | str = "auto",
        window: int | str | None = "auto",
        optimizer: Any = "adam",
        learning_rate: float | None = None,
        parameter_prior: Any = None,
        max_epochs: int | str = "auto",
        validation_fraction: float | str = "auto",
        patience: int | str = "auto",
        random_state: Any = 0,
        progress: Any = True,
    ):
        self.latent_dim = latent_dim
        self.likelihood = likelihood
        self.transition = transition
        self.recognition = recognition
        self.network = network
        self.recurrent_size = recurrent_size
        self.hidden = hidden
        self.transition_hidden = transition_hidden
        self.activation = activation
        self.autoregressive = autoregressive
        self.dropout = dropout
        self.linear_start = linear_start
        self.estimator = estimator
        self.num_samples = num_samples
        self.kl_annealing = kl_annealing
        self.batch_size = batch_size
        self.window = window
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.parameter_prior = parameter_prior
        self.max_epochs = max_epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.progress = progress

    # ---- learning ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        sequences: Any,
        lengths: Any = None,
        *,
        times: Any = None,
        controls: Any = None,
        covariates: Any = None,
        validation_data: Any = None,
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = 60.0,
        callbacks: Any = None,
    ) -> Self:
        """Fit the model.

        Args:
            sequences: See the class; NaN marks what is missing.
            lengths: (n,), the number of steps of each sequence, if all steps are rows of one array or frame.
            times: When each step was, in the form of the sequences, numbers or dates; None for regular steps.
            controls: Inputs u_t at each step, in the form of the sequences: numbers, or columns of different kinds.
                They are not modelled: states are conditioned on them.
            covariates: A label or number for each sequence, (n,), or a table of them. Likewise.
            validation_data: Sequences to hold out, instead of a part of the others: in a form that needs no `lengths`,
                or a dictionary of these arguments, ``{"sequences": ..., "times": ...}``.
            checkpoint: A folder in which the run is saved during training, see :meth:`aevb.VAE.fit`.
            checkpoint_seconds: Time between two saves.
            callbacks: What is called during training, see :mod:`aevb.callbacks`.

        Returns:
            self.
        """
        watch = Watch.of(checkpoint, checkpoint_seconds, callbacks)
        self._check_parameters()
        with unchanged_on_error(self):
            found = read_sequences(sequences, lengths, times)
            if found.lengths.max() == 1:
                raise ValueError(
                    "sequences: they have one step each, from which no transition can be learned. Give longer "
                    "sequences, or use VAE for rows that do not belong together."
                )
            format = SequenceFormat.learn(found, self.likelihood, controls, covariates)
            if is_frame(found.rows):
                show_columns(format.table, self._shows_progress, NAME_ITS_KIND, "sequences")
            format = replace(format, autoregressive=bool(self.autoregressive))
            encoded = format.encode(found, controls, covariates)
            data = TrainingSequences(format, encoded, _held_out(validation_data, format))
            run = seed_of(self.random_state), self._shows_progress, watch
            model, trained = fit_sequences(super()._arguments(), data, *run)
        self._keep(model, trained.state.optimizer_state)
        if trained.error is not None:
            raise trained.error
        return self

    def partial_fit(
        self, sequences: Any, lengths: Any = None, *, times: Any = None, controls: Any = None, covariates: Any = None
    ) -> Self:
        """Continue training with one pass through a batch of sequences; call `fit` with the first batch.

        There is no prior on the parameters, because the number of sequences to come is not known. If `optimizer` has
        changed since the last call, its state is reset.

        Args: those of `fit`.

        Returns:
            self.
        """
        self._check_parameters()
        if not self.__sklearn_is_fitted__():
            raise ValueError(
                "partial_fit: kinds and units of the columns are learned from many sequences: call fit with the first "
                "of them, then partial_fit."
            )
        _, encoded = self._read(sequences, lengths, times, controls, covariates)
        model, trained = learn_more(self.model_, self._arguments(), encoded, self._optimizer_state)
        self._keep(model, trained.state.optimizer_state)
        return self

    # ---- private -----------------------------------------------------------------------------------------------------

    def _arguments(self):
        """Return the arguments; of a fitted model with the sizes that were chosen for its data."""
        arguments = super()._arguments()
        return given_sizes(arguments, self.model_.arguments) if self.__sklearn_is_fitted__() else arguments

    def _check_parameters(self):
        arguments = self._arguments()
        check_settings(arguments, SEQUENCE_SETTINGS)
        if arguments.kl_annealing and arguments.estimator == "importance":
            raise ValueError(
                "kl_annealing: the importance-weighted bound has no KL term. Use estimator='sgvb-b', or leave it at 0."
            )

    def _keep(self, model: FittedModel, optimizer_state):
        self.model_, self._optimizer_state = model, optimizer_state
        self.n_features_in_ = len(model.format.table.names)

    @classmethod
    def _of(cls, model: FittedModel, optimizer_state) -> "SequenceVAE":
        """Return the estimator of a model that was loaded."""
        estimator = cls(**model.arguments.options(SEQUENCE_SETTINGS))
        estimator._keep(model, optimizer_state)
        return estimator


def _held_out(given, format: SequenceFormat) -> Encoded | None:
    """Return the sequences that the user holds out, None for none."""
    if given is None:
        return None
    found, conditions = read_arguments(given, "validation_data")
    return format.encode(found, **conditions)
