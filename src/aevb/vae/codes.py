"""Coding and generation as methods of an estimator."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpyro.distributions import Distribution
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from aevb.arguments import check_parameter
from aevb.data.checks import check_rows
from aevb.data.frames import read_given
from aevb.data.reading import read_array
from aevb.errors import shown
from aevb.fitted import coding, tables
from aevb.fitted.likelihoods import check_encoder
from aevb.models import Datapoint
from aevb.vae.base import ModelEstimator


class CodingMethods(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ModelEstimator):
    """Estimators that encode rows, decode codes and generate rows by their fitted model."""

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Fit the model, and return the posterior mean of z for each row of X; see `fit` and `transform`."""
        fitted: Any = getattr(self, "fit")(X, y, **fit_params)  # noqa: B009
        return fitted.transform(X, y)

    def transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Return the posterior mean of z for each row of X, (n, latent_dim).

        It is the mean of q(z|x), or without an encoder the mean of samples by Hybrid Monte Carlo. For a row with
        missing values (NaN) it is E[z | observed values] under the model, the mean of 400 samples by Hybrid Monte Carlo
        (by importance sampling if the prior's support is not all real numbers).

        Args:
            X: (n, D).
            y: What the rows are conditioned on, for each row or the same for all; ignored unless the model is
                conditional.
        """
        X = self._check_rows_given(X, y, may_miss=True)
        given = Datapoint.of(X).values.dtype
        dtype = given if given == np.float64 else np.dtype(np.float32)
        return coding.posterior_means(self.model_, X, progress=self._shows_progress).astype(dtype)

    # The argument `posterior` is the family of q(z|x), and `posterior(X)` is q(z|x) itself (decision 0009).
    # scikit-learn sets an attribute for each argument, which would hide a method; here the attribute is the method, and
    # `get_params` returns the argument.
    @property
    def posterior(self) -> Callable[..., Distribution]:
        """``posterior(X)`` returns q(z|x) for the rows of X: one NumPyro distribution with batch shape (n,).

        Of a conditional model, ``posterior(X, y)`` returns q(z|x, y).

        For a row with missing values (NaN) it is q(z | observed values): the member of the encoder's family with the
        largest lower bound on log p(observed values), found by gradient ascent. With your own `encoder` it is the
        encoder's output for the row with a guess of the missing values.
        """
        return self._posterior_of

    @posterior.setter
    def posterior(self, family: str) -> None:
        self._posterior = family

    def _posterior_of(self, X, y=None):
        X = self._check_rows_given(X, y, may_miss=True)
        check_encoder(self.model_, "posterior", "transform(X) gives posterior means by Hybrid Monte Carlo")
        return coding.posterior(self.model_, X, progress=self._shows_progress)

    def inverse_transform(self, Z: Any, y: Any = None) -> Any:
        """Return the decoder's mean for each row of Z, (n, D); bytes fitted as grey levels come back in [0, 1].

        Args:
            Z: (n, latent_dim).
            y: What the rows are conditioned on, see `transform`.
        """
        check_is_fitted(self)
        given, Z = Z, read_array(Z, "Z")
        check_rows(Z, None, name="Z")
        if Z.shape[1] != self.latent_dim_:
            raise ValueError(f"Z has shape {Z.shape}; expected {self.latent_dim_} columns, the latent dimensions.")
        rows = coding.decode(self.model_, Z, self._read_given(y, len(Z)))
        return self._as_rows(rows, None if self.model_.is_table else given)

    def reconstruct(self, X: Any, y: Any = None) -> Any:
        """Return the decoder's mean at the posterior mean of each row of X, (n, D); grey levels are in [0, 1].

        The posterior mean is that of `transform`, also for rows with missing values: all values of such a row, observed
        or not, come from the decoder. `impute` keeps the observed values.

        Args:
            X: (n, D).
            y: What the rows are conditioned on, see `transform`.
        """
        check_is_fitted(self)
        if not self.model_.is_table and self.model_.given is None:
            return self.inverse_transform(self.transform(X))
        rows = coding.reconstruct(self.model_, self._check_rows_given(X, y), progress=self._shows_progress)
        return self._as_rows(rows, X)

    def counterfactual(self, X: Any, y: Any, new_y: Any = None) -> Any:
        """Return what the rows of X would be with another y: encoded with their own, decoded with the new one.

        Each row keeps the mean of its z, which is what y does not say about it: the style of a handwritten digit.

        Args:
            X: (n, D).
            y: What the rows are conditioned on, see `transform`.
            new_y: Instead of it, for each row or the same for all; None for each of the labels, if y is one label.

        Returns:
            (n, D); if `new_y` is None, a list of them, one for each label in order.
        """
        check_is_fitted(self)
        if self.model_.given is None:
            raise ValueError("counterfactual: needs a conditional model. Fit VAE(conditional=True).fit(X, y).")
        if new_y is None:
            return [self.counterfactual(X, y, label) for label in self._labels()]
        rows = self._check_rows_given(X, y)
        given = self._read_given(new_y, len(rows.values), "new_y")
        rows = coding.reconstruct(self.model_, rows, progress=self._shows_progress, given=given)
        return self._as_rows(rows, X)

    def _labels(self):
        """Return the labels that rows are conditioned on."""
        columns = self.model_.given.columns
        if len(columns) != 1 or not columns[0].levels:
            raise ValueError("new_y: y is not one label, so the other values are not known. Give new_y.")
        return columns[0].levels

    def sample(
        self,
        num_samples: int = 1,
        *,
        y: Any = None,
        given: Any = None,
        mean: bool = False,
        temperature: float = 1.0,
        random_state: Any = None,
    ) -> Any:
        """Draw new rows from the model.

        Args:
            num_samples: Number of rows.
            y: For a conditional model, what the rows are conditioned on: one value for all, or one for each.
            given: For a model of a table, what is known of some columns, by name: a value, a list of values, or a range
                ``(low, high)``; None for an end means the smallest or largest value in training. z is then drawn given
                these columns, by importance resampling, and never by rejection; a warning says if few draws of z
                explain them.
            mean: Whether to return the decoder's means instead of draws from them.
            temperature: Factor for the deviations of z from the prior's mean: below 1, rows are more typical and less
                diverse. Values other than 1 need a prior on all real numbers.
            random_state: As in scikit-learn; None for the model's own, which returns the same rows each time.

        Returns:
            (num_samples, D).
        """
        check_is_fitted(self)
        if y is not None and self.model_.given is None:
            raise ValueError("y: this model is not conditional. Fit VAE(conditional=True).fit(X, y), or leave out y.")
        if given is not None:
            self._refuse_given("given")
            self._check_given(given, mean, temperature)
        if given:
            return self._sample_given(num_samples, given, random_state)
        random_state = self._arguments().random_state if random_state is None else random_state
        check_parameter("num_samples", num_samples, kind=int, low=1)
        if y is not None and np.ndim(y) == 1 and len(y) not in (1, num_samples):
            raise ValueError(
                f"y has {len(y):,} values, but num_samples={num_samples:,}. Give one for all rows, or one for each."
            )
        condition = self._read_given(y, num_samples)
        options = {"mean": mean, "temperature": temperature, "random_state": random_state}
        rows = coding.sample(self.model_, num_samples, given=condition, **options)
        return self._as_rows(rows if mean or not self.model_.is_table else self.model_.format.with_holes(rows))

    def _check_given(self, given, mean, temperature):
        """Refuse what cannot be combined with given columns."""
        if not isinstance(given, Mapping):
            raise ValueError(f"given={shown(given)}: give values by column, such as {{'age': (30, 40)}}.")
        if not self.model_.is_table:
            raise ValueError(
                "given: needs a model of a table, whose columns have families of their own. For a matrix, mark what is "
                "unknown as NaN: impute(X, num_draws=...)."
            )
        if mean or temperature != 1:
            raise ValueError(
                "given: cannot be combined with mean=True or a temperature. Use impute(rows) for expectations."
            )

    def _sample_given(self, num_samples, given, random_state):
        """Draw rows of a table with some columns given."""
        check_parameter("num_samples", num_samples, kind=int, low=1)
        evidence = read_given(self.model_.format, given)
        found = tables.sample_given(self.model_, num_samples, evidence, random_state=random_state)
        tables.warn_about_evidence(found, given)
        single = {str(name) for name, value in given.items() if not isinstance(value, tuple)}
        return self._as_rows(self.model_.format.with_holes(found.rows), given=single)
