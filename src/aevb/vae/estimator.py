"""The variational auto-encoder as a scikit-learn estimator.

Paper: §3.
"""

import logging
import numbers
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpyro.distributions import Distribution
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from aevb import tasks
from aevb.arguments import check_parameter, read_random_state
from aevb.data.checks import check_rows, minus, warn_about_empty_rows
from aevb.data.reading import column_names, read_array, read_matrix, read_training_data
from aevb.data.training_data import DataRequest, offset_for, open_training_data, units_for
from aevb.estimators import ESTIMATORS, has_analytic_kl, sgvb_a, sgvb_b
from aevb.files import check_folder, check_path
from aevb.learners import OPTIMIZERS, adagrad, learner_kind
from aevb.learners.optimizers import DEFAULT_LEARNING_RATES
from aevb.memory import check_memory
from aevb.models import LIKELIHOODS, OWN_PARTS, Conversion, Numbers, assemble, check_models, has_real_support, split
from aevb.models.linear_start import start_linear
from aevb.persistence import written_arguments
from aevb.settings import with_arguments
from aevb.tasks.observations import Missing
from aevb.training import ADAGRAD_STEP_SIZES, Resident, Source, bound_terms, choose_step_size, rowwise, train, train_on
from aevb.training.budget import AUTO, MAX_STEPS, SMALL, batch_size_for, budget_for, prior_precision
from aevb.training.checkpoint import Checkpoints, network_fingerprint, newest_about, optimizer_fingerprint
from aevb.training.latent_dim import Search, candidates, search_feed, search_latent_dim
from aevb.training.progress import ShareDone, tell
from aevb.training.recipe import COLLAPSED, is_collapsed, relearn, warm_up
from aevb.vae.checks import check_feed, check_held_out, check_settings, has_a_bound, learns_from_batches
from aevb.vae.conventions import SilentCopies, Unsaved, as_output, available_if, unchanged_on_error
from aevb.vae.tasks import TaskMethods

_LIKELIHOOD_LOG = logging.getLogger("aevb.likelihood")
LINEAR_ROWS = 10_000  # for fitting the linear model to start from


class Keys(NamedTuple):
    """The random keys of a run, by purpose."""

    init: Array
    rows: Array
    choice: Array
    train: Array
    learner: Array


@with_arguments
class VAE(SilentCopies, TaskMethods, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Variational auto-encoder: a deep latent-variable model, learned by Auto-Encoding Variational Bayes.

    .. math:: \log p(x) \ge -D_{KL}(q(z|x) \| p(z)) + E_{q(z|x)}[\log p(x|z)]

    The defaults are chosen to work well on most data. The paper's own setting is ``VAE(optimizer="adagrad",
    init="paper", activation="tanh", validation_fraction=0)``.

    Args: described in :mod:`aevb.settings`.

    Attributes:
        generative_: p(z) p(x|z), an Equinox module; after ``learner="full-vb"`` the average over 20 draws of the
            weights; ``generative_.mean`` is the model at their posterior means.
        recognition_: q(z|x), an Equinox module; with ``amortized=False`` one that searches for it; None after
            ``learner="mcem"``.
        history_: One row (a dict) per epoch, or per several epochs of small data: epoch, samples, lower_bound and
            its terms (reconstruction minus kl_divergence), the same for held-out rows (validation_lower_bound, ...),
            seconds. With ``estimator="importance"`` there are no terms, because the bound is not such a difference;
            ``learner="mcem"`` has log_joint and acceptance instead of bounds. With ``learner="full-vb"``,
            lower_bound includes the cost of the weights, KL(q(theta) || p(theta)) / N, and has no terms;
            validation_lower_bound does not include it: it is a bound on the predictive density, given the learned
            posterior of the weights. A long pass through batches has several rows.
        latent_dim_: J, the number of latent variables.
        latent_dim_search_: With ``latent_dim="auto"``, one row (a dict) for each J tried: ``latent_dim``,
            ``validation_lower_bound``, ``below_best`` (how far the bound is below the best) and ``std_error`` (of that
            difference, by the rows' differences). Otherwise empty.
        likelihood_: p(x|z): ``"bernoulli"``, ``"gaussian"``, ``"sigmoid-gaussian"``, or ``"custom"`` with your own
            decoder.
        likelihood_reason_: With ``likelihood="auto"``, why this one was chosen.
        offset_: None, or (D,): what is subtracted from the columns of X, in float64, before anything is computed in
            float32. It is the mean of columns that lie over 1,000 standard deviations from 0. ``generative_`` models X
            minus ``offset_``; the methods add it again, and then return float64.
        estimator_: The estimator in use.
        learning_rate_: The learning rate in use.
        stopped_because_: ``"converged"``, ``"max_epochs"``, ``"end_of_data"`` (of an iterator), ``"interrupted"``,
            ``"diverged"``, or ``"failed"``: reading the data failed after training had begun, and `fit` raised the
            error.
        refit_epochs_: With fewer than 1,000 rows and default settings, the model is refit on all rows, including those
            held out, for as many epochs as were best for the held-out rows. This is that number; ``history_`` is of
            the run before. 0 means that the linear model it starts from was best. None if there was no refit.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> from aevb import VAE
        >>> X = load_digits().data / 16
        >>> vae = VAE(latent_dim=2, hidden=(100,), max_epochs=3, progress=False).fit(X)
        >>> vae.transform(X).shape
        (1797, 2)

    Paper: §3.
    """

    def __init__(
        self,
        latent_dim=2,
        *,
        likelihood="auto",
        hidden=(500,),
        activation="gelu",
        posterior="gaussian",
        amortized=True,
        learner="aevb",
        estimator="sgvb-b",
        num_samples=1,
        batch_size="auto",
        optimizer="adam",
        learning_rate=None,
        forgetting=0.0,
        init="auto",
        max_epochs="auto",
        validation_fraction="auto",
        patience="auto",
        parameter_prior="auto",
        prior=None,
        encoder=None,
        decoder=None,
        random_state=0,
        progress=True,
    ):
        self.latent_dim = latent_dim
        self.likelihood = likelihood
        self.hidden = hidden
        self.activation = activation
        self.posterior = posterior
        self.amortized = amortized
        self.learner = learner
        self.estimator = estimator
        self.num_samples = num_samples
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.forgetting = forgetting
        self.init = init
        self.max_epochs = max_epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.parameter_prior = parameter_prior
        self.prior = prior
        self.encoder = encoder
        self.decoder = decoder
        self.random_state = random_state
        self.progress = progress

    # ---- learning ----------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, *, validation_data=None, checkpoint=None, checkpoint_seconds=60.0):
        """Fit the model to the rows of X.

        Args:
            X: (N, D), numbers; bytes (uint8) that are grey levels are read as k/255. Or the path of a `.npy`, `.npz`,
                `.csv` or `.parquet` file, or of a folder of them or of pictures; files too large for memory, and large
                memory maps, are read in pieces. Or grey levels from which each epoch makes new binary draws,
                ``aevb.data.binarize(X, "dynamic")``. Or an object that yields batches (n, D): an iterator, which is
                used once, or an iterable or a function that returns an iterator, for up to `max_epochs` passes. For
                batches N is unknown: the prior on the parameters is ignored, nothing is held out, and the first few
                thousand rows determine likelihood and units.
            y: Ignored.
            validation_data: (n, D), rows used to detect convergence instead of a `validation_fraction` of X. X must
                then be an array, or grey levels with dynamic binary draws (these rows are not drawn: give zeros and
                ones). Without an encoder (``learner="mcem"``, ``amortized=False``) there is no bound, and they are
                ignored.
            checkpoint: A folder in which the run is saved during training. If it contains an interrupted run with the
                same settings and data, training resumes from there, with the same result as without the interruption;
                `max_epochs` may differ.
            checkpoint_seconds: Time between two saves.

        Returns:
            self.
        """
        self._check_parameters()
        check_parameter("checkpoint_seconds", checkpoint_seconds, kind=float, low=0)
        if checkpoint is not None:
            check_folder("checkpoint", checkpoint)
        with unchanged_on_error(self):
            keys = cache(self._keys)
            needs_encoder = self._learner_kind.needs_encoder
            held_out = self.validation_fraction if needs_encoder else 0  # without an encoder, rows are not evaluated
            request = DataRequest(
                self.likelihood, self.decoder is not None, self.batch_size, held_out, self._shows_progress
            )
            if needs_encoder:
                request = request._replace(validation_data=validation_data)
            reading, units, feed = open_training_data(self, X, request, lambda: keys().rows)
            self._take(reading)
            check_feed(self._learner_kind, feed.num_rows, isinstance(feed, Resident))
            check_held_out(self, feed)
            budget = self._budget(feed, checkpoint)
            if isinstance(feed, Resident):
                feed = replace(feed, epochs_per_row=budget.epochs_per_row)
            checkpoints = self._checkpoints(feed, checkpoint, checkpoint_seconds)
            if checkpoints is not None:
                checkpoints.notes["epochs_per_row"] = budget.epochs_per_row
            self.offset_ = offset_for(reading, units)
            self._set_latent_dim(units, keys(), feed, checkpoints)
            learner, state = self._start(units, keys(), feed)
            trained = train_on(
                learner,
                state,
                feed,
                key=keys().train,
                max_epochs=budget.max_epochs,
                patience=budget.patience,
                progress=self._shows_progress,
                checkpoints=checkpoints,
            )
            if self.max_epochs == AUTO and isinstance(feed, Resident):
                learner, trained = self._improve(learner, trained, feed, units, keys(), budget)
            if trained.stopped_because == "interrupted" and not trained.history:
                raise KeyboardInterrupt  # there is nothing to keep
        self.history_, self.stopped_because_ = trained.history, trained.stopped_because
        self.refit_epochs_ = trained.refit_epochs
        self._keep(learner, trained, *feed.first())
        if trained.error is not None:
            trained.error.add_note("The model keeps what it learned before the error.")
            raise trained.error
        return self

    @available_if(learns_from_batches)
    def partial_fit(self, X, y=None):
        """Continue training with one pass through a batch of rows.

        The first call of an unfitted model initializes it, with this batch's units. A stream has no known N, so the
        prior on the parameters is ignored. Batches of equal shape share one compiled program. For data whose
        distribution changes, use Adam, or Adagrad with `forgetting`.

        Args:
            X: (n, D).
            y: Ignored.

        Returns:
            self.
        """
        self._check_parameters()
        with unchanged_on_error(self):
            if not self.__sklearn_is_fitted__():
                if self.latent_dim == AUTO:
                    raise ValueError(
                        "partial_fit: latent_dim='auto' needs held-out rows. Give a number, or call fit(X)."
                    )
                self.latent_dim_, self.latent_dim_search_ = int(self.latent_dim), []
                X = read_matrix(self, X, reset=True)
                own_decoder = self.decoder is not None
                reading = read_training_data(X, self.likelihood, own_decoder=own_decoder, columns=column_names(self))
                self._take(reading)
                units = units_for(X, reading)
                self.offset_ = offset_for(reading, units)
                models = self._start_models(units, self._keys().init)
                history = []
                if self.learning_rate_ is None:
                    self.learning_rate_ = ADAGRAD_STEP_SIZES[1]  # a stream cannot be read twice to choose it
            else:
                X = self._check_new_data(X)
                self._check_encoder("partial_fit", "call fit(X)")
                models, history = (self.generative_, self.recognition_), self.history_
                if self.learning_rate is not None:
                    self.learning_rate_ = self.learning_rate
            key = jax.random.fold_in(jax.random.key(self.seed_), 1 + len(history))
            learner, state = self._streaming_learner(models, key)
            setting = {"key": key, "batch_size": batch_size_for(len(X), self.batch_size), "max_epochs": 1}
            trained = train(learner, state, self._source(X), np.arange(len(X)), **setting)
        self._keep(learner, trained, self._source(X), np.arange(len(X)))
        self._streaming = Unsaved((self._learner_setting(), self.generative_, learner, trained.state))
        samples = history[-1]["samples"] if history else 0
        history += [{**row, "epoch": len(history) + 1, "samples": samples + row["samples"]} for row in trained.history]
        self.history_, self.stopped_because_, self.refit_epochs_ = history, trained.stopped_because, None
        if self.stopped_because_ == "interrupted":
            raise KeyboardInterrupt  # otherwise the caller's loop over batches could not be interrupted
        return self

    # ---- coding and generation ---------------------------------------------------------------------------------------

    def transform(self, X):
        """Return the posterior mean of z for each row of X, (n, latent_dim).

        It is the mean of q(z|x), or without an encoder the mean of samples by Hybrid Monte Carlo. For a row with
        missing values (NaN) it is E[z | observed values] under the model, the mean of 400 samples by Hybrid Monte Carlo
        (by importance sampling if the prior's support is not all real numbers).
        """
        X = self._check_new_data(X, may_miss=True)
        dtype = X.dtype if X.dtype == np.float64 else np.dtype(np.float32)
        return tasks.by_completeness(X, self._codes, self._codes_given_observed).astype(dtype)

    # The argument `posterior` is the family of q(z|x), and `posterior(X)` is q(z|x) itself (decision 0009).
    # scikit-learn sets an attribute for each argument, which would hide a method; here the attribute is the method, and
    # `get_params` returns the argument.
    @property
    def posterior(self) -> Callable[[Any], Distribution]:
        """``posterior(X)`` returns q(z|x) for the rows of X: one NumPyro distribution with batch shape (n,).

        For a row with missing values (NaN) it is q(z | observed values): the member of the encoder's family with the
        largest lower bound on log p(observed values), found by gradient ascent. With your own `encoder` it is the
        encoder's output for the row with a guess of the missing values.
        """
        return self._posterior_of

    @posterior.setter
    def posterior(self, family):
        self._posterior = family

    def _posterior_of(self, X):
        X = self._check_new_data(X, may_miss=True)
        self._check_encoder("posterior", "transform(X) gives posterior means by Hybrid Monte Carlo")

        def given_observed(X):
            with self._bar("finding q(z | observed values)") as bar:
                models, x = self._models_given_observed(self.recognition_), minus(X, self.offset_)
                return tasks.observed_posterior(models, x, self._key(None), bar.update)

        return tasks.promote_batch(tasks.by_completeness(X, self._encode, given_observed))

    def inverse_transform(self, Z):
        """Return the decoder's mean for each row of Z, (n, D); bytes fitted as grey levels come back in [0, 1]."""
        check_is_fitted(self)
        given, Z = Z, read_array(Z, "Z")
        check_rows(Z, None, name="Z")
        if Z.shape[1] != self.latent_dim_:
            raise ValueError(f"Z has shape {Z.shape}; expected {self.latent_dim_} columns, the latent dimensions.")
        return as_output(self, self._decode(Z), given)

    def reconstruct(self, X):
        """Return the decoder's mean at the posterior mean of each row of X, (n, D); grey levels are in [0, 1].

        The posterior mean is that of `transform`, also for rows with missing values: all values of such a row, observed
        or not, come from the decoder. `impute` keeps the observed values.
        """
        return self.inverse_transform(self.transform(X))

    def sample(self, num_samples=1, *, mean=False, temperature=1.0, random_state=None):
        """Draw new rows from the model.

        Args:
            num_samples: Number of rows.
            mean: Whether to return the decoder's means instead of draws from them.
            temperature: Factor for the deviations of z from the prior's mean: below 1, rows are more typical and less
                diverse. Values other than 1 need a prior on all real numbers.
            random_state: As in scikit-learn; None for the model's own, which returns the same rows each time.

        Returns:
            (num_samples, D).
        """
        check_is_fitted(self)
        check_parameter("num_samples", num_samples, kind=int, low=1)
        key = jax.random.key(self._seed(self.random_state if random_state is None else random_state))
        source, rows = Source(tasks.numbers_of_rows(num_samples)), np.arange(num_samples)
        draw = tasks.sample_mean if mean else tasks.sample
        drawn = rowwise(draw, self.generative_, source, rows, key, *self._cooling(temperature))
        return as_output(self, self._in_own_units(drawn))

    # ---- how good is it ----------------------------------------------------------------------------------------------

    @available_if(has_a_bound)
    def score_samples(self, X, *, num_samples=None):
        """Return the estimated lower bound on log p(x) for each row of X, in nats.

        It is estimator B if ``estimator_`` is ``"sgvb-b"``, else A, also for a model trained with another bound. The
        noise is a function of `random_state` and the row: the value of a row is always the same, and equal rows have
        equal noise. For data with few distinct rows, increase `num_samples`.

        For a row with missing values (NaN) it is a bound on log p(observed values), the density of fewer columns, with
        q(z | observed values) as in `posterior`; do not compare it with rows that have other observed columns. A row
        without observed values has 0, and a warning says so.

        Args:
            X: (n, D), with NaN for missing values.
            num_samples: L; None for the model's own.

        Returns:
            (n,).
        """
        return self._bound_terms(X, num_samples).lower_bound.astype(np.float64)

    @available_if(has_a_bound)
    def score(self, X, y=None, *, num_samples=None):
        """Return the average estimated lower bound on log p(x) over the rows of X, in nats per row.

        For rows with missing values it is a bound on the observed values, see `score_samples`.
        """
        return float(np.mean(self.score_samples(X, num_samples=num_samples)))

    def log_likelihood(self, X, *, method="importance", num_samples=1000, random_state=None, **options):
        """Estimate log p(x) for each row of X, in nats, with standard errors.

        For a row with missing values (NaN) it is log p(observed values): the missing ones are integrated out.

        Args:
            X: (n, D), with NaN for missing values.
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
        from aevb.inference.marginal_likelihood import check_arguments, combined, log_likelihood

        X = self._check_new_data(X, may_miss=True)
        warn_about_empty_rows(X)
        if method == "importance":
            self._check_encoder('method="importance"', 'use method="laplace" or "ais"')
        recognition = self._networks()[1] if method == "laplace" else self.recognition_
        models = self.generative_, recognition
        check_arguments(*models, method, num_samples, options)  # before anything is compiled
        key = self._key(random_state)
        takes_long = method == "ais" and "progress" not in options
        with ShareDone(self._shows_progress and takes_long, "annealing") as bar:
            if takes_long:
                options["progress"] = bar.update

            def estimate_of(models, X):
                generative, recognition = models
                x = self._source(X).take(np.arange(len(X)))
                return log_likelihood(generative, recognition, x, key, method, num_samples, **options)

            has_holes = tasks.rows_with_holes(X)
            # Starting points of chains and optimizers need no search for the best q.
            given_observed = self._models_given_observed(recognition, searches=method == "importance")
            parts = (~has_holes, models), (has_holes, given_observed)
            found = [(rows, estimate_of(models, X[rows])) for rows, models in parts if rows.any()]
            estimate = combined(self.generative_, found, num_samples)
        for reason in estimate.warnings:
            warnings.warn(reason, UserWarning, stacklevel=2)
        return estimate

    def compare(self, train, test, *, method="importance", num_samples=1000):
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
        from aevb.inference.baselines import Comparison, fit_baselines, is_comparable

        given = test
        train, test = self._check_new_data(train, "train"), self._check_new_data(test, "test")
        if not LIKELIHOODS[self.likelihood_].density or self.decoder is not None:
            raise ValueError(f"compare: needs a Gaussian likelihood, but this model has {self.likelihood_!r}.")
        levels, rows = train * self._scale_of(train), test * self._scale_of(test)
        if not is_comparable(levels):
            raise ValueError(
                f"train: has shape {train.shape}; compare needs at least 10 rows, at most 100 columns and a million "
                "values, without NaN or constant columns."
            )
        own = self.log_likelihood(given, method=method, num_samples=num_samples).values
        others = fit_baselines(levels, rows, num_factors=self.latent_dim_)
        return Comparison({"this model": own, **others.values}, {"this model": "", **others.details})

    # ---- saving ------------------------------------------------------------------------------------------------------

    def save(self, folder):
        """Write the model to a folder, as safetensors and JSON; :func:`aevb.load` reads it back."""
        from aevb.persistence import save

        check_is_fitted(self)
        return save(self, check_path("folder", folder))

    # ---- private -----------------------------------------------------------------------------------------------------

    def _check_parameters(self):
        check_settings(self)

    def _checkpoints(self, feed, folder, every):
        if folder is None:
            return None
        if (fingerprint := feed.fingerprint) is None:  # once: it reads all data
            raise ValueError("checkpoint: needs data that can be read again: an array or files. Leave it out.")
        if not isinstance(self.random_state, numbers.Integral):
            raise ValueError(f"checkpoint: needs an integer random_state, but {self.random_state!r} was given.")
        arguments, own_networks = written_arguments(self)
        for name in ("max_epochs", "progress"):
            del arguments[name]
        own = {name: network_fingerprint(getattr(self, name)) for name in own_networks}
        if not isinstance(self.optimizer, str):
            own["optimizer"] = optimizer_fingerprint(self.optimizer)
        return Checkpoints(folder, {"arguments": arguments, "own parts": own, "data": fingerprint}, every)

    def _check_new_data(self, X, name="X", *, may_miss=False, any_range=False):
        """Return new rows as a matrix, after checking the observed values.

        Args:
            X: (n, D).
            name: Name of the argument, for messages.
            may_miss: Whether NaN is allowed, for missing values.
            any_range: Whether the values may lie outside of the likelihood's range.
        """
        check_is_fitted(self)
        X = read_matrix(self, X, reset=False, name=name)
        likelihood = None if any_range else self.likelihood_
        observed = X
        if may_miss and tasks.rows_with_holes(X).any():
            X = np.where(np.isnan(X), np.nan, X)  # one bit pattern for all NaNs: noise is a function of a row's bits
            observed = np.where(np.isnan(X), 0, X)
        check_rows(observed, likelihood, scale=self._scale_of(X), name=name, columns=column_names(self))
        return X

    def _take(self, reading):
        self.likelihood_, self.scale_, self.likelihood_reason_, _ = reading
        if self.likelihood_reason_:
            _LIKELIHOOD_LOG.info("Likelihood: %s, because %s.", self.likelihood_, self.likelihood_reason_)

    def _scale_of(self, X):
        return self.scale_ if X.dtype == np.uint8 else 1.0

    def _source(self, X):
        return Source(minus(X, self.offset_), Conversion(Numbers(self._scale_of(X))))

    def _in_own_units(self, rows):
        """Return the model's output in the units of X; in float64 where float32 has too few digits."""
        return rows if self.offset_ is None else np.asarray(rows) + self.offset_

    def _hidden_widths(self):
        return tuple(np.atleast_1d(np.asarray(self.hidden, dtype=object)).tolist())

    def _codes(self, X):
        """Return the posterior means of complete, checked rows, (n, J)."""
        rows, source = np.arange(len(X)), self._source(X)
        if self.recognition_ is None:
            return rowwise(tasks.posterior_mean_by_hmc, self.generative_, source, rows, self._key(None))
        return rowwise(tasks.posterior_mean, self.recognition_, source, rows)

    def _codes_given_observed(self, X):
        has_hmc = has_real_support(self.generative_.latent_distribution())
        options = {"method": "hmc" if has_hmc else "importance", "num_samples": 100}
        with self._bar("sampling z") as bar:
            options["progress"] = bar.update
            x = minus(X, self.offset_)
            return tasks.latent_means(*self._networks(), Missing(), x, self._key(None), **options)

    def _encode(self, X):
        return rowwise(tasks.encode, self.recognition_, self._source(X), np.arange(len(X)))

    def _decode(self, Z):
        """Return the decoder's means at checked codes, (n, D)."""
        return self._in_own_units(rowwise(tasks.decoder_mean, self.generative_, Source(Z), np.arange(len(Z))))

    def _models_given_observed(self, recognition, searches=True):
        """Return p(z) p(x_observed|z) and q(z|x_observed); see :func:`aevb.tasks.given_observed`."""
        family = (self.get_params()["posterior"], self.latent_dim_) if searches and self.encoder is None else None
        return tasks.given_observed(self.generative_, recognition, family, self._bound())

    def _bound(self):
        return sgvb_b if self.estimator_ == "sgvb-b" else sgvb_a

    def _bar(self, what):
        return ShareDone(self._shows_progress, what)

    def _check_encoder(self, requested, instead):
        if self.recognition_ is None:
            raise ValueError(f"{requested}: needs q(z|x), but the model has no encoder; {instead}.")

    def _bound_terms(self, X, num_samples):
        """Return the bound of each row of X, and its two terms."""
        num_samples = self.num_samples if num_samples is None else num_samples
        check_parameter("num_samples", num_samples, kind=int, low=1)
        X = self._check_new_data(X, may_miss=True)
        warn_about_empty_rows(X)
        self._check_encoder("score_samples", 'log_likelihood(X, method="hmc") estimates log p(x) itself')
        setting = self._key(None), self._bound(), num_samples

        def of_complete(X):
            return bound_terms(self.generative_, self.recognition_, self._source(X), np.arange(len(X)), *setting)

        def of_observed(X):
            with self._bar("finding q(z | observed values)") as bar:
                models, x = self._models_given_observed(self.recognition_), minus(X, self.offset_)
                return tasks.observed_bound_terms(models, x, *setting, progress=bar.update)

        return tasks.by_completeness(X, of_complete, of_observed)

    def _seed(self, random_state):
        return int(read_random_state(random_state).randint(2**31 - 1))

    def _keys(self):
        """Return the keys of a run, from a fresh seed."""
        self.seed_ = self._seed(self.random_state)
        init, key = jax.random.split(jax.random.key(self.seed_))
        rows, choice, train = jax.random.split(key, 3)
        return Keys(init, rows, choice, train, jax.random.fold_in(key, 3))

    def _start_models(self, units, key, rows=None):
        """Return models with initial values, which depend on these rows if they are given."""
        data_dim: int = self.n_features_in_  # pyright: ignore[reportAttributeAccessIssue]
        if self.encoder is None and self.decoder is None:
            check_memory(data_dim, self.latent_dim_, self._hidden_widths())
        if units is not None:
            mean, std = units
            units = minus(mean, self.offset_).astype(np.float32), std.astype(np.float32)
        models = self._build_models(data_dim, units, key, rows)
        if models[1] is None or any(getattr(self, name) is not None for name in OWN_PARTS):
            estimator = sgvb_a if self.estimator == "sgvb-b" else ESTIMATORS[self.estimator]
            check_models(*models, data_dim, self.latent_dim_, estimator, self.num_samples)
        self.learning_rate_ = self._initial_learning_rate()
        return models

    def _build_models(self, data_dim, units, key, rows=None):
        sizes = data_dim, self.latent_dim_, tuple(map(int, self._hidden_widths()))
        own = {name: getattr(self, name) for name in OWN_PARTS}
        own["posterior"] = self.get_params()["posterior"]
        init = "glorot" if self.init == AUTO else self.init
        models = assemble(sizes, self.likelihood_, self.activation, units, init, key, **own)
        if rows is not None:
            models = start_linear(models, np.asarray(rows))
        return self._learner_kind.prepare(*models, own["posterior"], self.latent_dim_)

    @property
    def _learner_kind(self):
        """The class of the learner, which declares its capabilities; see :class:`aevb.learners.Capabilities`."""
        return learner_kind(self.learner, self.amortized)

    def _is_standardized(self):
        named = LIKELIHOODS.get(self.likelihood_)
        return self.decoder is None and named is not None and named.standardize

    def _budget(self, feed, checkpoint=None):
        size = batch_size_for(feed.num_rows, self.batch_size)
        # The length of an iterator's epochs is unknown.
        steps = MAX_STEPS if feed.num_rows is None else max(feed.num_rows // size, 1)
        may_repeat = isinstance(feed, Resident) and not self._learner_kind.keeps_rows
        options = {"is_judged": feed.held_out is not None, "may_repeat": may_repeat}
        about = None if checkpoint is None else newest_about(checkpoint)
        options["epochs_per_row"] = (about or {}).get("notes", {}).get("epochs_per_row")  # of a run that resumes
        budget = budget_for(steps, self.max_epochs, self.patience, **options)
        return budget._replace(patience=budget.patience._replace(judges_start=self.init == AUTO))

    def _set_latent_dim(self, units, keys, feed, checkpoints):
        """Set J: the number given, or the one that a search finds; a run that goes on has searched before."""
        if self.latent_dim != AUTO:
            self.latent_dim_, self.latent_dim_search_ = int(self.latent_dim), []
            return
        about = None if checkpoints is None else newest_about(checkpoints.folder)
        saved = (about or {}).get("notes", {}).get("search")
        search = self._search_latent_dim(units, keys, feed) if saved is None else Search.restored(**saved)
        self.latent_dim_, self.latent_dim_search_ = search
        if checkpoints is not None:
            checkpoints.notes["search"] = search._asdict()
        tell(self._shows_progress, str(search))

    def _search_latent_dim(self, units, keys, feed) -> Search:
        key = jax.random.fold_in(keys.train, 3)
        feed = search_feed(feed, batch_size_for(feed.num_rows, self.batch_size), key)
        budget = self._budget(feed)
        feed = replace(feed, epochs_per_row=budget.epochs_per_row)

        def start(latent_dim):
            self.latent_dim_ = latent_dim
            return self._start(units, keys, feed)

        smallest = 2 if self.get_params()["posterior"] == "dirichlet" else 1
        sizes = candidates(getattr(self, "n_features_in_"), feed.num_rows, smallest)  # noqa: B009
        return search_latent_dim(start, feed, budget, sizes, key=key, progress=self._shows_progress)

    def _start(self, units, keys, feed, *, linear=True):
        """Return the learner and its initial state for the feed's training rows."""
        source, numbers = feed.first()
        is_linear = linear and self.init == AUTO and units is not None
        rows = source.take(numbers[:LINEAR_ROWS]) if is_linear and self.optimizer != "sgd" else None
        models = self._start_models(units, keys.init, rows)
        learner, state = self._start_learner(models, feed.num_rows, keys.learner)
        if self.learning_rate_ is None:
            size = batch_size_for(feed.num_rows, self.batch_size)
            self.learning_rate_ = choose_step_size(learner, state, source, numbers, key=keys.choice, batch_size=size)
            state = state._replace(learning_rate=jnp.asarray(self.learning_rate_))
        return learner, state

    def _improve(self, learner, trained, feed: Resident, units, keys, budget):
        """Train again if no latent variable is active; with few rows, train on the held-out rows too."""
        if trained.stopped_because not in ("converged", "max_epochs") or not self._learner_kind.needs_encoder:
            return learner, trained
        if self._learner_kind.follows_estimator and is_collapsed(learner, trained, feed):
            other = keys._replace(init=jax.random.fold_in(keys.init, 1))
            warm = warm_up(learner, self._start(units, other, feed, linear=False)[1], feed, keys.choice)
            if warm.stopped_because == "interrupted":
                return learner, replace(trained, stopped_because="interrupted")
            options = {"max_epochs": budget.max_epochs, "patience": budget.patience, "progress": self._shows_progress}
            again = train_on(learner, warm.state, feed, key=jax.random.fold_in(keys.train, 1), **options)
            is_better = trained.best_bound is None or (again.best_bound or -np.inf) > trained.best_bound
            trained = again if is_better else replace(trained, stopped_because=again.stopped_because)
            if again.stopped_because != "interrupted" and is_collapsed(learner, trained, feed):
                warnings.warn(COLLAPSED, UserWarning, stacklevel=3)
            return learner, trained
        held_out = feed.validation_rows if feed.validation_source is None else None
        if held_out is None or self.validation_fraction != AUTO or trained.halvings:
            return learner, trained
        if feed.num_rows + len(held_out) >= SMALL:
            return learner, trained
        rows = np.sort(np.concatenate([feed.train_rows, held_out]))
        whole = replace(feed, train_rows=rows, validation_rows=None)
        other, state = self._start(units, keys, whole)
        again = relearn(other, state, whole, jax.random.fold_in(keys.train, 2), trained.best_path)
        if again.stopped_because == "interrupted":
            return learner, replace(trained, stopped_because="interrupted")
        if again.stopped_because not in ("max_epochs", "converged"):
            return learner, trained
        epochs = sum(trained.best_path) * budget.epochs_per_row
        return other, replace(trained, state=again.state, refit_epochs=epochs)

    def _initial_learning_rate(self):
        if isinstance(self.optimizer, optax.GradientTransformation):
            return 1.0 if self.learning_rate is None else self.learning_rate
        return DEFAULT_LEARNING_RATES.get(self.optimizer) if self.learning_rate is None else self.learning_rate

    def _optimizer(self):
        if self.forgetting:
            return adagrad(forgetting=float(self.forgetting))
        return OPTIMIZERS[self.optimizer] if isinstance(self.optimizer, str) else self.optimizer

    def _start_learner(self, models, num_data, key):
        """Return the learner and its initial state; for a stream N is unknown, and the prior is ignored."""
        is_known = num_data is not None
        self.estimator_ = self._choose_estimator(*models)
        learner = self._learner_kind(
            skeleton=split(models).skeleton,
            num_data=num_data if is_known else 1,
            estimator=ESTIMATORS[self.estimator_],
            num_samples=self.num_samples,
            optimizer=self._optimizer(),
            parameter_prior=prior_precision(num_data, self.parameter_prior, is_standardized=self._is_standardized()),
        )
        return learner, learner.init(models, self.learning_rate_ or 0.0, key)

    def _choose_estimator(self, generative, recognition):
        if self.estimator != "sgvb-b" or recognition is None:
            return self.estimator
        return "sgvb-b" if has_analytic_kl(generative, recognition, getattr(self, "n_features_in_")) else "sgvb-a"  # noqa: B009

    def _streaming_learner(self, models, key):
        """Return the learner and state of the last call of `partial_fit`, or new ones if anything has changed."""
        running = getattr(self, "_streaming", Unsaved()).value
        if running is not None:
            setting, generative, learner, state = running
            if setting == self._learner_setting() and generative is models[0]:
                return learner, state._replace(learning_rate=jnp.asarray(self.learning_rate_))
        learner, state = self._start_learner(models, None, key)
        before = getattr(self, "_optimizer_state", None)
        if _same_form(before, state.optimizer_state):  # not at the start, nor with another optimizer
            state = state._replace(optimizer_state=before)
        return learner, state

    def _learner_setting(self):
        return self.learner, self.estimator, self.num_samples, self.optimizer, self.forgetting

    def _keep(self, learner, trained, source, rows):
        self.generative_, self.recognition_ = learner.models(trained.state)
        self._optimizer_state = trained.state.optimizer_state
        self._streaming = Unsaved()
        self.learning_rate_ /= 2**trained.halvings
        self.dispersion_ = 1.0  # until it is measured: Ctrl-C here must not leave a model that cannot be used
        self.dispersion_ = self._measured_dispersion(source, rows)

    def get_params(self, deep=True):
        """Return the constructor's arguments by name."""
        return {**super().get_params(deep), "posterior": self._posterior}

    @property
    def _n_features_out(self):  # for scikit-learn's names of the codes
        return self.latent_dim_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "generative_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _same_form(one, other):
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        left.shape == right.shape for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )
