"""How good is it: the bound, log p(x) and comparisons as methods of an estimator."""

from typing import Any

import numpy as np

from aevb.data.checks import warn_about_empty_rows
from aevb.data.weights import read_weights
from aevb.fitted import likelihoods
from aevb.inference.baselines import Comparison
from aevb.inference.result import LogLikelihood
from aevb.models import Datapoint
from aevb.training.weights import weighted_mean
from aevb.vae.base import ModelEstimator
from aevb.vae.checks import has_a_bound
from aevb.vae.conventions import available_if


class ScoreMethods(ModelEstimator):
    """Estimators that score rows by their fitted model."""

    @available_if(has_a_bound)
    def score_samples(self, X: Any, y: Any = None, *, num_samples: int | None = None) -> np.ndarray:
        """Return the estimated lower bound on log p(x) for each row of X, in nats.

        It is estimator B if ``estimator_`` is ``"sgvb-b"``, else A, also for a model trained with another bound. The
        noise is a function of `random_state` and the row: the value of a row is always the same, and equal rows have
        equal noise. For data with few distinct rows, increase `num_samples`.

        For a row with missing values (NaN) it is a bound on log p(observed values), the density of fewer columns, with
        q(z | observed values) as in `posterior`; do not compare it with rows that have other observed columns. A row
        without observed values has 0, and a warning says so.

        Args:
            X: (n, D), with NaN for missing values.
            y: What the rows are conditioned on, of a conditional model: the bound is then on log p(x|y). Ignored
                otherwise.
            num_samples: L; None for the model's own.

        Returns:
            (n,).
        """
        X = self._check_rows_given(X, y, may_miss=True)
        warn_about_empty_rows(Datapoint.of(X).values)
        num_samples = self.model_.num_samples if num_samples is None else num_samples
        terms = likelihoods.lower_bound_terms(self.model_, X, num_samples, progress=self._shows_progress)
        return np.asarray(terms.lower_bound, np.float64)

    @available_if(has_a_bound)
    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, num_samples: int | None = None) -> float:
        """Return the average estimated lower bound on log p(x) over the rows of X, in nats per row.

        For rows with missing values it is a bound on the observed values, see `score_samples`.

        Args:
            X: (n, D), with NaN for missing values.
            y: See `score_samples`.
            sample_weight: (n,), weights of the rows in the average, at least 0; None if they are equal.
            num_samples: L; None for the model's own.
        """
        bounds = self.score_samples(X, y, num_samples=num_samples)
        return weighted_mean(bounds, None if sample_weight is None else read_weights(sample_weight, len(bounds)))

    def log_likelihood(
        self,
        X: Any,
        y: Any = None,
        *,
        method: str = "importance",
        num_samples: int = 1000,
        random_state: Any = None,
        **options: Any,
    ) -> LogLikelihood:
        """Estimate log p(x) for each row of X, in nats, with standard errors.

        For a row with missing values (NaN) it is log p(observed values): the missing ones are integrated out.

        Args:
            X: (n, D), with NaN for missing values.
            y: What the rows are conditioned on, of a conditional model: the result is then log p(x|y). Ignored
                otherwise.
            method: ``"importance"`` (needs an encoder), ``"laplace"`` (importance sampling around each row's own modes:
                slower, and better unless the encoder is very good), ``"hmc"`` (the estimator of the paper's appendix D,
                for up to 4 latent variables), ``"ais"`` (annealed importance sampling), or ``"quadrature"`` (1 or 2
                latent variables).
            num_samples: Samples of z per row; temperatures for ``"ais"``; not used by ``"quadrature"``.
            random_state: As in scikit-learn; None for the model's own.
            options: Options of the method, see :func:`aevb.inference.marginal_likelihood.log_likelihood`.

        Returns:
            :class:`aevb.inference.result.LogLikelihood` with ``values``, ``std_errors`` and ``diagnostics``.
            Reasons not to trust it are in its ``warnings``, and are issued as Python warnings.
        """
        X = self._check_rows_given(X, y, may_miss=True)
        warn_about_empty_rows(Datapoint.of(X).values)
        setting = {"method": method, "num_samples": num_samples, "random_state": random_state}
        setting |= {"progress": self._shows_progress, "options": options}
        return likelihoods.log_likelihood(self.model_, X, **setting)

    def compare(self, train: Any, test: Any, *, method: str = "importance", num_samples: int = 1000) -> Comparison:
        """Compare log p(x) of test rows with that of simple models, fitted to the training rows.

        These are independent columns, PCA, factor analysis (with the best number of factors and with as many as this
        model has latent variables) and a Gaussian mixture; see :func:`aevb.inference.baselines.fit_baselines`.

        Args:
            train: (N, D), the rows this model was fitted to: a small table of real numbers.
            test: (n, D), rows that it was not fitted to.
            method: How log p(x) of this model is estimated, see :meth:`log_likelihood`.
            num_samples: Samples of z per row.

        Returns:
            :class:`aevb.inference.baselines.Comparison`: ``means``, ``std_errors`` and ``values`` (per row) by the name
            of a model, ``"this model"`` first, in nats and in the units of X. Printing it gives a small table.

        Raises:
            ValueError: The likelihood is not a density of real numbers, or the data are too large for the comparison.
        """
        self._refuse_given("compare")
        train, test = self._check_new_data(train, "train"), self._check_new_data(test, "test")
        return likelihoods.compare(self.model_, train, test, method=method, num_samples=num_samples)
