"""Regression with latent variables: the distribution of y given x may have any shape.

Paper: §7.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from aevb.arguments import check_parameter
from aevb.data.given import GivenData
from aevb.data.reading import set_table_columns
from aevb.data.regression_targets import learn_targets, read_targets
from aevb.data.request import DataRequest
from aevb.data.training_data import table_data
from aevb.data.weights import read_weights
from aevb.errors import shown
from aevb.fitted import likelihoods, prediction
from aevb.fitted.model import FittedModel
from aevb.inference.result import LogLikelihood
from aevb.models import Datapoint
from aevb.settings import REGRESSOR_SETTINGS, with_arguments
from aevb.vae.checks import check_settings
from aevb.vae.conventions import unchanged_on_error
from aevb.vae.inputs import InputMethods
from aevb.vae.learning import Task, Watch, learn
from aevb.vae.streaming import Stream, continued, learn_batch


@with_arguments(REGRESSOR_SETTINGS)
class VAERegressor(RegressorMixin, InputMethods):
    r"""Regression that predicts a distribution: skewed, with several modes, and of a width that depends on x.

    .. math:: p(y|x) = \int p(z|x)\, p(y|x, z)\, dz

    A conditional variational auto-encoder of y given x. It is learned by maximizing a lower bound on log p(y|x) with an
    encoder q(z|x, y).

    Args: described in :mod:`aevb.settings`.

    Attributes:
        model_: The fitted model, an immutable :class:`aevb.fitted.FittedModel` of the targets given x.
        history_: One row (a dict) per epoch, or per several epochs of small data; see :class:`aevb.VAE`.
        n_outputs_: T, the number of targets.
        stopped_because_: See :class:`aevb.VAE`.

    Example:
        >>> from sklearn.datasets import load_diabetes
        >>> from aevb import VAERegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = VAERegressor(hidden=(20,), max_epochs=3, progress=False).fit(X, y)
        >>> model.predict(X).shape, model.predict_interval(X, level=0.9).shape
        ((442,), (442, 2))
    """

    _has_one_target: bool

    def __init__(
        self,
        latent_dim: Any = 2,
        *,
        likelihood: Any = "student-t",
        conditional_prior: bool = True,
        hidden: int | Sequence[int] | None = (50, 50),
        estimator: str = "importance",
        num_samples: int = 10,
        activation: str = "gelu",
        posterior: str = "gaussian",
        batch_size: int | str = "auto",
        optimizer: Any = "adam",
        learning_rate: float | None = 0.005,
        max_epochs: int | str = "auto",
        validation_fraction: float | str = "auto",
        patience: int | str = "auto",
        parameter_prior: Any = "auto",
        random_state: Any = 0,
        progress: Any = True,
    ):
        self.latent_dim = latent_dim
        self.likelihood = likelihood
        self.conditional_prior = conditional_prior
        self.hidden = hidden
        self.estimator = estimator
        self.num_samples = num_samples
        self.activation = activation
        self.posterior = posterior
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.parameter_prior = parameter_prior
        self.random_state = random_state
        self.progress = progress

    # ---- learning ----------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = 60.0,
        callbacks: Any = None,
    ) -> Self:
        """Fit the model to the rows of X and their targets y.

        Args:
            X: (N, D), numbers with NaN for missing values, or a data frame with columns of any kind.
            y: (N,) or (N, T), numbers, or a data frame of targets. NaN marks what is not known: rows without any known
                target are not used, since they say nothing about p(y|x).
            sample_weight: (N,), weights of the rows, at least 0; None if they are equal.
            checkpoint: A folder in which the run is saved during training, see :meth:`aevb.VAE.fit`.
            checkpoint_seconds: Time between two saves.
            callbacks: What is called during training, see :mod:`aevb.callbacks`.

        Returns:
            self.
        """
        watch = Watch.of(checkpoint, checkpoint_seconds, callbacks)
        return self._fit(X, y, sample_weight, self._arguments(), watch)

    def _fit(self, X, y, sample_weight, arguments, watch):
        self._check_parameters()

        def task(key):
            inputs, given = self._learn_inputs(X)
            targets, rows, has_one = learn_targets(y, self.likelihood, len(given))
            self._has_one_target = has_one
            weights = None if sample_weight is None else read_weights(sample_weight, len(given))
            is_known = ~np.isnan(rows).all(axis=1)
            given, rows = given[is_known], rows[is_known]
            weights = None if weights is None else weights[is_known]
            request = DataRequest(
                self.likelihood,
                False,
                self.batch_size,
                arguments.validation_fraction,
                self._shows_progress,
                sample_weight=weights,
                given=GivenData(inputs, given),
            )
            return Task(table_data(targets, rows, request, key), inputs, columns=inputs)

        with unchanged_on_error(self):
            learned = learn(self, arguments, task, watch)
        self._keep(learned.model, learned.trained.state.optimizer_state, Stream())
        if (error := learned.error) is not None:
            raise error
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Continue training with one pass through a batch of rows.

        The first call of an unfitted model learns kinds and units from its batch.

        Args:
            X: (n, D).
            y: (n,) or (n, T), with NaN for what is not known.

        Returns:
            self.
        """
        self._check_parameters()
        if not self.__sklearn_is_fitted__():
            once = self._arguments().replaced(max_epochs=1, validation_fraction=0)
            return self._fit(X, y, None, once, Watch())
        given = self._read_inputs(X)
        rows = self._read_targets(y, len(given))
        is_known = ~np.isnan(rows).all(axis=1)
        if not is_known.any():
            raise ValueError("y: all targets are NaN, so that there is nothing to learn from. Give some of them.")
        if np.isnan(rows[is_known]).any() and not self.model_.format.encodes_missing:
            raise ValueError(
                "y: some targets of a row are NaN and others not, but the model was fitted to no such rows. Leave "
                "these rows out, or fit the model to some of them."
            )
        rows = Datapoint(rows[is_known], given=given[is_known])
        model, design = continued(self.model_, self._arguments())
        model, stream, trained = learn_batch(self._stream, design, model, rows, self._optimizer_state)
        self._keep(model, trained.state.optimizer_state, stream)
        return self

    # ---- prediction --------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Return the expectation of y for each row of X, (n,) or (n, T), averaged over 500 draws of z."""
        given = self._read_inputs(X)
        return self._one_target(prediction.predictive_mean(self.model_, given), axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination of the predicted means, averaged over targets; 1 is the best.

        Args:
            X: (n, D).
            y: (n,) or (n, T), targets. Those that are NaN are left out.
            sample_weight: (n,), weights of the rows, at least 0; None if they are equal.
        """
        from sklearn.metrics import r2_score  # slow to import

        given = self._read_inputs(X)
        values, found = prediction.in_units(self.model_, self._read_targets(y, len(given))), []
        weights = None if sample_weight is None else read_weights(sample_weight, len(given))
        for target, predicted in zip(values.T, prediction.predictive_mean(self.model_, given).T, strict=True):
            is_known = ~np.isnan(target)
            if not is_known.any():
                raise ValueError("y: all targets are NaN: there is nothing to compare predictions with. Give targets.")
            of_known = None if weights is None else weights[is_known]
            found.append(r2_score(target[is_known], predicted[is_known], sample_weight=of_known))
        return float(np.mean(found))

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Return quantiles of y for each row of X, (n, Q) or (n, T, Q), of 2,000 draws of y.

        Args:
            X: (n, D).
            quantiles: (Q,), each between 0 and 1.
        """
        given, levels = self._read_inputs(X), np.atleast_1d(np.asarray(quantiles, float))
        if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"quantiles={shown(quantiles)}: expected numbers between 0 and 1.")
        return self._one_target(prediction.predictive_quantiles(self.model_, given, levels), axis=1)

    def predict_interval(self, X: Any, level: Any = 0.9) -> np.ndarray:
        """Return the central interval that contains y with this probability, (n, 2) or (n, T, 2): low and high ends.

        Args:
            X: (n, D).
            level: Between 0 and 1.
        """
        check_parameter("level", level, kind=float, above=0, high=1)
        tail = (1 - min(level, 0.9999)) / 2
        return self.predict_quantiles(X, (tail, 1 - tail))

    def sample(self, X: Any, num_draws: Any = 1, *, random_state: Any = None) -> np.ndarray:
        """Draw y for each row of X, (num_draws, n) or (num_draws, n, T).

        Args:
            X: (n, D).
            num_draws: Number of draws for each row.
            random_state: As in scikit-learn; None for the model's own.
        """
        check_parameter("num_draws", num_draws, kind=int, low=1)
        given = self._read_inputs(X)
        drawn = prediction.predictive_draws(self.model_, given, num_draws, random_state=random_state)
        return self._one_target(drawn, axis=2)

    def log_prob(
        self, X: Any, y: Any, *, method: str = "importance", num_samples: int = 1000, random_state: Any = None
    ) -> LogLikelihood:
        """Estimate log p(y|x) for each row, in nats and in the units of y, with standard errors.

        With several targets it is their joint density; targets that are NaN are left out.

        Args:
            X: (n, D).
            y: (n,) or (n, T).
            method: ``"importance"``, from a mixture of q(z|x, y) and p(z|x), or another one, see
                :func:`aevb.inference.marginal_likelihood.log_likelihood`.
            num_samples: Samples of z per row.
            random_state: As in scikit-learn; None for the model's own.

        Returns:
            :class:`aevb.inference.result.LogLikelihood` with ``values``, ``std_errors`` and ``diagnostics``.
        """
        given = self._read_inputs(X)
        rows = Datapoint(self._read_targets(y, len(given)), given=given)
        setting: dict[str, Any] = {"method": method, "num_samples": num_samples, "random_state": random_state}
        return likelihoods.log_likelihood(self.model_, rows, **setting)

    # ---- private -----------------------------------------------------------------------------------------------------

    def _check_parameters(self):
        check_settings(self._arguments(), REGRESSOR_SETTINGS)

    @property
    def n_outputs_(self) -> int:
        """The number of targets."""
        return len(self.model_.format.columns)

    def _read_targets(self, y, length):
        return read_targets(self.model_.format, y, length)

    def _one_target(self, values, axis):
        return values.take(0, axis=axis) if self._has_one_target else values

    @classmethod
    def _of(cls, model: FittedModel, optimizer_state) -> "VAERegressor":
        """Return the estimator of a model that was loaded."""
        regressor = cls(**model.arguments.options(REGRESSOR_SETTINGS))
        set_table_columns(regressor, model.given)
        regressor._has_one_target = list(model.format.names) == ["y"]
        regressor._keep(model, optimizer_state, Stream())
        return regressor
