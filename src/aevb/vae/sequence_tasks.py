"""What `SequenceVAE` can do with sequences once it is fitted: check, call a function of the model, return."""

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from aevb.arguments import check_parameter
from aevb.data.sequence_format import Encoded
from aevb.data.sequences import Sequences, read_sequences
from aevb.fitted import forecasts
from aevb.fitted import sequences as tasks
from aevb.inference.result import LogLikelihood
from aevb.vae.base import ModelEstimator

METHODS = ("importance", "particle-filter")


class SequenceTasks(ModelEstimator):
    """The methods of :class:`~aevb.SequenceVAE` for fitted models. Abstract."""

    num_samples: Any

    # ---- states ------------------------------------------------------------------------------------------------------

    def transform(
        self,
        sequences: Any,
        lengths: Any = None,
        *,
        times: Any = None,
        controls: Any = None,
        covariates: Any = None,
        return_std: bool = False,
    ) -> Any:
        """Return smoothed states, E[z_t | x_1, ..., x_T] under q: (T_i, J) for each sequence.

        Args:
            sequences: And the other data, as in `fit`.
            lengths: See `fit`.
            times: See `fit`.
            controls: See `fit`.
            covariates: See `fit`.
            return_std: Whether to return their standard deviations too.
        """
        found, encoded = self._read(sequences, lengths, times, controls, covariates)
        means, stds = tasks.smoothed(self.model_, encoded, 100)
        return (found.restored(means), found.restored(stds)) if return_std else found.restored(means)

    def filter(
        self,
        sequences: Any,
        lengths: Any = None,
        *,
        times: Any = None,
        controls: Any = None,
        covariates: Any = None,
        num_particles: int = 1000,
    ) -> Any:
        """Return filtered states, E[z_t | x_1, ..., x_t], by a particle filter: (T_i, J) for each sequence.

        Args:
            sequences: And the other data, as in `fit`.
            lengths: See `fit`.
            times: See `fit`.
            controls: See `fit`.
            covariates: See `fit`.
            num_particles: Particles.
        """
        check_parameter("num_particles", num_particles, kind=int, low=1)
        found, encoded = self._read(sequences, lengths, times, controls, covariates)
        states = tasks.filtered(self.model_, encoded, num_particles)
        return found.restored([mean for mean, _, _ in states])

    # ---- how good is the model ---------------------------------------------------------------------------------------

    def score_samples(
        self, sequences: Any, lengths: Any = None, *, times: Any = None, controls: Any = None, covariates: Any = None
    ) -> np.ndarray:
        """Return the lower bound of each sequence in nats, (n,): of the whole sequence, not per step.

        Args: those of `fit`.
        """
        _, encoded = self._read(sequences, lengths, times, controls, covariates)
        return np.asarray(self._bounds(encoded))

    def score(
        self, sequences: Any, lengths: Any = None, *, times: Any = None, controls: Any = None, covariates: Any = None
    ) -> float:
        """Return the lower bound in nats per step: the sum of all bounds divided by the sum of all lengths.

        Steps without any observation count too. Other conventions in use are the mean of each sequence's bound per
        step, which gives short sequences more weight, and the importance-sampled
        ``log_likelihood(X).values.sum() / lengths.sum()``, which is larger.

        Args: those of `fit`.
        """
        _, encoded = self._read(sequences, lengths, times, controls, covariates)
        return float(self._bounds(encoded).sum() / encoded.lengths.sum())

    def log_likelihood(
        self,
        sequences: Any,
        lengths: Any = None,
        *,
        times: Any = None,
        controls: Any = None,
        covariates: Any = None,
        method: str = "importance",
        num_samples: int = 1000,
        random_state: Any = None,
    ) -> LogLikelihood:
        """Estimate log p(x) of each sequence in nats, with standard errors.

        Args:
            sequences: And the other data, as in `fit`.
            lengths: See `fit`.
            times: See `fit`.
            controls: See `fit`.
            covariates: See `fit`.
            method: ``"importance"`` weights draws of all states from q(z|x): good if q is. ``"particle-filter"``: good
                for long sequences with few state variables, whatever q is. The exponential of both is unbiased.
            num_samples: Draws, or particles.
            random_state: As in scikit-learn; None for the model's own.

        Returns:
            :class:`aevb.inference.result.LogLikelihood` with ``values`` and ``std_errors``, (n,).
        """
        check_parameter("method", method, choices=METHODS)
        check_parameter("num_samples", num_samples, kind=int, low=20)
        _, encoded = self._read(sequences, lengths, times, controls, covariates)
        estimate = tasks.log_likelihood(self.model_, encoded, method, num_samples, random_state)
        for reason in estimate.warnings:
            warnings.warn(reason, UserWarning, stacklevel=2)
        return estimate

    # ---- new values --------------------------------------------------------------------------------------------------

    def sample(
        self,
        num_samples: int = 1,
        length: Any = None,
        *,
        controls: Any = None,
        covariates: Any = None,
        mean: bool = False,
        random_state: Any = None,
    ) -> Any:
        """Draw new sequences: a list of arrays (length, D), in the units of the data.

        Args:
            num_samples: Number of sequences.
            length: Number of steps of each, or (num_samples,).
            controls: Inputs at each step, if the model has them.
            covariates: For each sequence, if the model has them.
            mean: Whether to return the emissions' means instead of draws from them.
            random_state: As in scikit-learn; None for the model's own.
        """
        check_is_fitted(self)
        check_parameter("num_samples", num_samples, kind=int, low=1)
        if length is None:
            raise ValueError("length: give the number of steps of the new sequences.")
        for one in np.ravel(length):
            check_parameter("length", int(one) if float(one).is_integer() else one, kind=int, low=1)
        lengths = np.broadcast_to(np.asarray(length, int), (num_samples,))
        encoded = self.model_.format.blank(lengths, controls, covariates)
        drawn = tasks.sample(self.model_, encoded, random_state, mean=mean)
        return [self.model_.format.in_units(values) for values in drawn]

    def forecast(
        self,
        sequences: Any,
        steps: Any,
        num_draws: Any = 100,
        *,
        lengths: Any = None,
        times: Any = None,
        controls: Any = None,
        covariates: Any = None,
        random_state: Any = None,
    ) -> forecasts.Forecast:
        """Draw the steps after the end of each sequence.

        The states at the end are drawn by a particle filter, or from q where that is better, those after it from the
        transition.

        Args:
            sequences: And the other data, as in `fit`.
            steps: Number of steps; of irregular sequences, in units of their median gap.
            num_draws: Number of draws.
            lengths: See `fit`.
            times: See `fit`.
            controls: See `fit`, with those of the forecast at the end of each sequence: (T_i + steps, U).
            covariates: See `fit`.
            random_state: As in scikit-learn; None for the model's own.

        Returns:
            :class:`aevb.fitted.forecasts.Forecast` with ``draws`` (n, num_draws, steps, D), ``mean`` and
            ``interval(level)``, in the units of the data.
        """
        for name, value in (("steps", steps), ("num_draws", num_draws)):
            check_parameter(name, value, kind=int, low=1)
        _, encoded = self._read(sequences, lengths, times, controls, covariates, more=steps)
        drawn = forecasts.forecast(self.model_, encoded, steps, num_draws, random_state)
        return forecasts.Forecast(self.model_.format.in_units(drawn))

    def impute(
        self,
        sequences: Any,
        lengths: Any = None,
        *,
        times: Any = None,
        controls: Any = None,
        covariates: Any = None,
        num_draws: Any = 0,
        random_state: Any = None,
    ) -> Any:
        """Fill in what is missing (NaN), given everything that is observed in a sequence.

        Numbers are filled in with their expectations, labels with the most probable ones. States are drawn from q, or
        by a particle filter where that is closer to their posterior.

        Args:
            sequences: And the other data, as in `fit`.
            lengths: See `fit`.
            times: See `fit`.
            controls: See `fit`.
            covariates: See `fit`.
            num_draws: Number of draws of the missing values to return as well.
            random_state: As in scikit-learn; None for the model's own.

        Returns:
            The sequences; with `num_draws`, the pair of them and a list of draws, (num_draws, T_i, D) each.
        """
        check_parameter("num_draws", num_draws, kind=int, low=0)
        found, encoded = self._read(sequences, lengths, times, controls, covariates)
        guesses, draws = tasks.impute(self.model_, encoded, num_draws, random_state)
        format = self.model_.format
        filled = format.decoded(found, guesses)
        return (filled, [format.in_units(drawn) for drawn in draws]) if num_draws else filled

    def surprise(
        self,
        sequences: Any,
        lengths: Any = None,
        *,
        times: Any = None,
        controls: Any = None,
        covariates: Any = None,
        num_particles: int = 1000,
    ) -> Any:
        """Return how unexpected each step is, -log p(x_t | x_1, ..., x_{t-1}) in nats: (T_i,) for each sequence.

        It is 0 for a step without any observation. Large values are anomalies in time.

        Args:
            sequences: And the other data, as in `fit`.
            lengths: See `fit`.
            times: See `fit`.
            controls: See `fit`.
            covariates: See `fit`.
            num_particles: Of the particle filter.
        """
        check_parameter("num_particles", num_particles, kind=int, low=1)
        found, encoded = self._read(sequences, lengths, times, controls, covariates)
        return found.restored([-log_p for _, _, log_p in tasks.filtered(self.model_, encoded, num_particles)])

    def reconstruct(
        self, sequences: Any, lengths: Any = None, *, times: Any = None, controls: Any = None, covariates: Any = None
    ) -> Any:
        """Return the expectation of each step under q: (T_i, D); of binary columns, probabilities.

        Args: those of `fit`.
        """
        found, encoded = self._read(sequences, lengths, times, controls, covariates)
        means = tasks.reconstruct(self.model_, encoded)
        return found.restored([self.model_.format.in_units(mean, exact=False) for mean in means])

    # ---- private -----------------------------------------------------------------------------------------------------

    def _read(self, given, lengths, times, controls, covariates, more=0) -> tuple[Sequences, Encoded]:
        check_is_fitted(self)
        found = read_sequences(given, lengths, times)
        return found, self.model_.format.encode(found, controls, covariates, more)

    def _bounds(self, encoded):
        return tasks.lower_bound_terms(self.model_, encoded, max(self.num_samples, 10)).lower_bound
