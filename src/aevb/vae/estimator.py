"""The variational auto-encoder as a scikit-learn estimator.

Paper: §3.
"""

from collections.abc import Sequence, Sized
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from aevb.arrays import num_rows
from aevb.data.given import check_lengths, read_given_data
from aevb.data.image_arrays import flat_images
from aevb.data.reading import read_matrix
from aevb.data.request import DataRequest
from aevb.data.training_data import open_training_data
from aevb.fitted.likelihoods import check_encoder
from aevb.fitted.model import FittedModel
from aevb.fitted.restoration import measured_dispersion
from aevb.settings import SETTINGS, with_arguments
from aevb.vae.checks import check_settings, check_weighted, learns_from_batches
from aevb.vae.codes import CodingMethods
from aevb.vae.conventions import available_if, unchanged_on_error
from aevb.vae.learning import Task, Watch, learn
from aevb.vae.streaming import Stream, check_batch, check_first_batch, continued, first_model, learn_batch
from aevb.vae.tasks import TaskMethods
from aevb.vae.topics import TopicMethods


@with_arguments(SETTINGS)
class VAE(CodingMethods, TaskMethods, TopicMethods):
    r"""Variational auto-encoder: a deep latent-variable model, learned by Auto-Encoding Variational Bayes.

    .. math:: \log p(x) \ge -D_{KL}(q(z|x) \| p(z)) + E_{q(z|x)}[\log p(x|z)]

    The defaults are chosen to work well on most data. The paper's own setting is ``VAE(optimizer="adagrad",
    init="paper", activation="tanh", validation_fraction=0)``.

    Args: described in :mod:`aevb.settings`.

    Attributes:
        model_: The fitted model, an immutable :class:`aevb.fitted.FittedModel`; the attributes below are facts of it.
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
        prior_: The name of p(z): ``"standard"``, ``"mixture"``, ``"flow"``, ``"vamp"``, or ``"custom"`` for your own.
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
        latent_dim: int | str | Sequence[int] | None = None,
        *,
        hierarchy: str = "ladder",
        likelihood: Any = "auto",
        missing: str = "ignored",
        conditional: bool = False,
        hidden: int | Sequence[int] | Sequence[Sequence[int]] | None = None,
        network: str = "mlp",
        image_shape: Sequence[int] | None = None,
        augment: Any = None,
        activation: str = "gelu",
        posterior: str = "gaussian",
        amortized: bool = True,
        learner: str = "aevb",
        estimator: str = "auto",
        num_samples: int = 1,
        kl_annealing: Any = "auto",
        free_bits: float = 0.0,
        batch_size: int | str = "auto",
        optimizer: Any = "adam",
        learning_rate: float | None = None,
        averaging: float | str = "auto",
        forgetting: float = 0.0,
        init: str = "auto",
        max_epochs: int | str = "auto",
        validation_fraction: float | str = "auto",
        patience: int | str = "auto",
        parameter_prior: Any = "auto",
        prior: Any = None,
        encoder: Any = None,
        decoder: Any = None,
        random_state: Any = 0,
        progress: Any = True,
    ):
        self.latent_dim = latent_dim
        self.hierarchy = hierarchy
        self.likelihood = likelihood
        self.missing = missing
        self.conditional = conditional
        self.hidden = hidden
        self.network = network
        self.image_shape = image_shape
        self.augment = augment
        self.activation = activation
        self.posterior = posterior
        self.amortized = amortized
        self.learner = learner
        self.estimator = estimator
        self.num_samples = num_samples
        self.kl_annealing = kl_annealing
        self.free_bits = free_bits
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.averaging = averaging
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

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        validation_data: Any = None,
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = 60.0,
        callbacks: Any = None,
    ) -> Self:
        """Fit the model to the rows of X.

        Args:
            X: (N, D), numbers; bytes (uint8) that are grey levels are read as k/255. Or the path or URL of a `.npy`,
                `.npz`, `.csv` or `.parquet` file, or of a folder of them or of pictures; files too large for memory,
                and large memory maps, are read in pieces. Or grey levels from which each epoch makes new binary draws,
                ``aevb.data.binarize(X, "dynamic")``. Or, with ``likelihood="multinomial"``, a SciPy sparse matrix
                of counts, which is never made dense as a whole. Or an object that yields batches (n, D): an iterator,
                which is used once, or an iterable or a function that returns an iterator, for up to `max_epochs`
                passes. For batches N is unknown: the prior on the parameters is ignored, nothing is held out, and the
                first few thousand rows determine likelihood and units.
            y: With ``conditional=True``, what the rows are conditioned on: (N,), labels or numbers, or a table of
                covariates, an array or a data frame. Ignored otherwise.
            sample_weight: (N,), weights of the rows, at least 0; None if they are equal. The bound's average over the
                rows is weighted, and N, which the prior on the parameters is compared with, is the sum of the weights:
                a row with weight 3 counts as three equal rows, and one with weight 0 is never used. Multiply weights
                that sum to 1 by the number of rows. X must be in memory, and the learner must not store a state for
                each row (``learner="mcem"``, ``amortized=False``).
            validation_data: (n, D), or (X, y) for a conditional model: rows used to detect convergence instead of a
                `validation_fraction` of X. X must then be an array, or grey levels with dynamic binary draws (these
                rows are not drawn: give zeros and ones). They have equal weights. Without an encoder
                (``learner="mcem"``, ``amortized=False``) there is no bound, and they are ignored.
            checkpoint: A folder in which the run is saved during training. If it contains an interrupted run with the
                same settings and data, training resumes from there, with the same result as without the interruption;
                `max_epochs` may differ.
            checkpoint_seconds: Time between two saves.
            callbacks: What is called during training: a function of an epoch's row of the history, an object with the
                methods described in :mod:`aevb.callbacks`, such as ``TensorBoard(folder)``, or a list of them.

        Returns:
            self.
        """
        self._check_parameters()
        watch = Watch.of(checkpoint, checkpoint_seconds, callbacks)
        check_weighted(self._learner_kind, sample_weight)

        def task(key):
            given, held_out = None, validation_data
            if self.conditional:
                if hasattr(X, "shape") and isinstance(y, Sized):
                    check_lengths(X.shape[0], len(y))
                given, held_out = read_given_data(y, validation_data, sample_weight)
            data = open_training_data(self, X, self._request(held_out, sample_weight, given), key)
            return Task(data, None if given is None else given.format, columns=data.table)

        with unchanged_on_error(self):
            learned = learn(self, self._arguments(), task, watch)
        self._keep_measured(learned.model, learned.trained, Stream(), *learned.data.feed.first()[:2])
        if (error := learned.error) is not None:
            raise error
        return self

    @available_if(learns_from_batches)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Continue training with one pass through a batch of rows.

        The first call of an unfitted model initializes it, with this batch's units. A stream has no known N, so the
        prior on the parameters is ignored. Batches of equal shape share one compiled program. For data whose
        distribution changes, use Adam, or Adagrad with `forgetting`. A table, with columns of different kinds or
        missing entries, needs `fit` first, with enough rows to tell kinds, labels and units. Arguments that say what
        the model consists of cannot change any more; others can, and another `optimizer` starts anew.

        Args:
            X: (n, D).
            y: What the rows are conditioned on, of a conditional model, whose first batch must be given to `fit`.
                Ignored otherwise.

        Returns:
            self.
        """
        self._check_parameters()
        with unchanged_on_error(self):
            if self.__sklearn_is_fitted__():
                X = self._check_rows_given(X, y)
                check_encoder(self.model_, "partial_fit", "call fit(X)")
                check_batch(self.model_, X)
                model, design = continued(self.model_, self._arguments())
            else:
                X = flat_images(self, X, reset=True)
                check_first_batch(X, self._arguments())
                X = read_matrix(self, X, reset=True)
                model, design = first_model(self, self._arguments(), X)
            stream, before = getattr(self, "_stream", Stream()), getattr(self, "_optimizer_state", None)
            model, stream, trained = learn_batch(stream, design, model, X, before)
        self._keep_measured(model, trained, stream, model.source(X), np.arange(num_rows(X)))
        if self.stopped_because_ == "interrupted":
            raise KeyboardInterrupt  # otherwise the caller's loop over batches could not be interrupted
        return self

    # ---- private -----------------------------------------------------------------------------------------------------

    def _check_parameters(self):
        check_settings(self._arguments())

    def _request(self, validation_data, sample_weight, given=None):
        """Return what is asked of the data; without an encoder, no rows are evaluated."""
        is_judged = self._learner_kind.needs_encoder
        return DataRequest(
            self.likelihood,
            self.decoder is not None,
            self.batch_size,
            self.validation_fraction if is_judged else 0,
            self._shows_progress,
            validation_data if is_judged else None,
            sample_weight,
            self.missing,
            given,
        )

    def _keep_measured(self, model: FittedModel, trained, stream, source, rows):
        """Keep a model; the dispersion of grey levels is measured last: Ctrl-C then leaves a model that can be used."""
        self._keep(model, trained.state.optimizer_state, stream)
        self.model_ = replace(model, dispersion=measured_dispersion(model, source, rows))

    @classmethod
    def _of(cls, model: FittedModel, optimizer_state) -> "VAE":
        """Return the estimator of a model that was loaded."""
        vae = cls(**vars(model.arguments))
        vae._set_columns_of(model)
        vae._keep(model, optimizer_state, Stream())
        return vae

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name."""
        return {**super().get_params(deep), "posterior": self._posterior}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = True
        return tags
