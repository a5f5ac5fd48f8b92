"""The variational auto-encoder behind scikit-learn's front door.

Paper: §3.
"""

from contextlib import contextmanager
from functools import partial
from types import MethodType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpyro.distributions import Distribution
from numpyro.distributions.batch_util import promote_batch_shape
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from aevb.data.checks import (
    UNIT_INTERVAL_LIKELIHOODS,
    check_columns_vary,
    check_number_type,
    check_parameter,
    check_rows,
    column_units,
)
from aevb.estimators import ESTIMATORS, sgvb_a, sgvb_b
from aevb.learners import AEVB, AEVBState
from aevb.learners.optimizers import DEFAULT_LEARNING_RATES, OPTIMIZERS
from aevb.models import DECODERS, GenerativeModel, RecognitionModel, join, split, standard_models
from aevb.networks import ACTIVATIONS, INITIALIZATIONS, initialize
from aevb.training import ADAGRAD_STEP_SIZES, Source, choose_step_size, lower_bounds, rowwise, train


class _MethodAndParameter:
    """A method that shares its name with a constructor argument: calling gives the method, assigning sets the argument.

    `posterior="gaussian"` is what q(z|x) is made of, `vae.posterior(X)` is q(z|x) itself.
    """

    def __init__(self, method):
        self._method = method
        self.__doc__ = method.__doc__

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, instance, owner=None):
        return self._method if instance is None else MethodType(self._method, instance)

    def __set__(self, instance, value):
        instance.__dict__[self._name] = value


class VAE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Variational auto-encoder: a deep latent-variable model, learned by Auto-Encoding Variational Bayes.

    .. math:: \log p(x) \ge -D_{KL}(q(z|x) \| p(z)) + E_{q(z|x)}[\log p(x|z)]

    The defaults are what works best for someone with data. The paper's own setting is ``VAE(optimizer="adagrad",
    init="paper", activation="tanh", validation_fraction=0)``.

    Args:
        latent_dim: J, number of latent variables.
        likelihood: p(x|z). ``"bernoulli"`` for data in [0, 1]: for binary data the bound is one on log p(x) in nats;
            for grey levels it is the average bound over random binarizations with these probabilities, and comparable
            with neither binary nor continuous results. ``"gaussian"`` for real data; columns are standardized inside,
            the bound is on the density in the units of X. ``"sigmoid-gaussian"`` keeps the means in (0, 1), as for Frey
            Face in the paper. ``"auto"``: Bernoulli if all of X lies in [0, 1], else Gaussian; ``likelihood_`` tells
            which.
        hidden: Widths of the decoder's hidden layers, or the width of a single one; the encoder has them in reverse
            order.
        activation: Of the hidden layers: ``"tanh"`` (the paper's), ``"relu"``, ``"gelu"``, ``"silu"``, ...
        posterior: q(z|x): ``"gaussian"``, with diagonal covariance.
        learner: ``"aevb"``.
        estimator: ``"sgvb-b"``, ``"sgvb-a"``, ``"score-function"`` or ``"importance"``.
        num_samples: L, draws of z for each datapoint and step.
        batch_size: M, datapoints in a step.
        optimizer: ``"adam"``, ``"adagrad"``, ``"sgd"``, or an optax transformation with its own learning rate.
        learning_rate: None for the best known default; with ``"adagrad"`` it is then chosen from {0.01, 0.02, 0.1} by
            the first iterations on the training set, as in the paper. The updates of an optax transformation are
            multiplied by it.
        init: ``"glorot"``, or ``"paper"``: N(0, 0.01), 0.01 being the variance.
        max_epochs: Largest number of passes through the data.
        validation_fraction: Share of the rows held out to notice convergence; 0 for none. Less than ten such rows are
            not held out.
        patience: Epochs without a better held-out bound after which learning stops; the best parameters are kept.
        parameter_prior: ``"normal"`` for MAP estimation under N(0, I) on all parameters, ``None`` for maximum
            likelihood.
        prior: p(z) as a numpyro distribution, or as an Equinox module that returns one and is learned; None for
            N(0, I).
        encoder: Your own network for q(z|x): an Equinox module from one datapoint to a numpyro distribution.
        decoder: Your own network for p(x|z): an Equinox module from one z to a numpyro distribution.
        random_state: As in scikit-learn.
        progress: Whether to show a progress bar.

    Attributes:
        generative_: p(z) p(x|z), an Equinox module.
        recognition_: q(z|x), an Equinox module.
        history_: What happened, one row (a dict) an epoch: epoch, samples, lower_bound, validation_lower_bound (if rows
            are held out), seconds.
        likelihood_: How X is read (its range and units) and, without a decoder of your own, p(x|z).
        learning_rate_: The learning rate in use.
        stopped_because_: ``"converged"``, ``"max_epochs"``, ``"interrupted"`` or ``"diverged"``.

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
        learner="aevb",
        estimator="sgvb-b",
        num_samples=1,
        batch_size=100,
        optimizer="adam",
        learning_rate=None,
        init="glorot",
        max_epochs=100,
        validation_fraction=0.1,
        patience=10,
        parameter_prior="normal",
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
        self.learner = learner
        self.estimator = estimator
        self.num_samples = num_samples
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
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

    def fit(self, X, y=None):
        """Learn from the rows of X.

        Args:
            X: (N, D), numbers; bytes (uint8) are read as grey levels k/255 where the likelihood wants [0, 1].
            y: Ignored.

        Returns:
            self.
        """
        self._check_parameters()
        with _unchanged_on_error(self):
            X = self._check_training_data(X)
            models, key = self._start_models(X)
            rows_key, choice_key, train_key = jax.random.split(key, 3)
            source = self._source(X)
            train_rows, validation_rows = self._hold_out(len(X), rows_key)
            learner, state = self._start_learner(models, num_data=len(train_rows))
            setting: dict[str, Any] = {"batch_size": self.batch_size}
            if self.learning_rate_ is None:
                self.learning_rate_ = choose_step_size(learner, state, source, train_rows, key=choice_key, **setting)
                state = state._replace(learning_rate=jnp.asarray(self.learning_rate_))
            trained = train(
                learner,
                state,
                source,
                train_rows,
                key=train_key,
                max_epochs=self.max_epochs,
                validation_rows=validation_rows,
                patience=self.patience,
                progress=self.progress,
                **setting,
            )
            if trained.stopped_because == "interrupted" and not trained.history:
                raise KeyboardInterrupt  # nothing was learned that could be kept
        self._keep(learner, trained.state)
        self.history_, self.stopped_because_ = trained.history, trained.stopped_because
        return self

    def partial_fit(self, X, y=None):
        """Learn from one more batch of rows: one pass through it, from where the model is.

        The first call of an unfitted model starts it, with this batch's units. Of a stream there is no N, so the prior
        on the parameters plays no part here.

        Args:
            X: (n, D).
            y: Ignored.

        Returns:
            self.
        """
        self._check_parameters()
        with _unchanged_on_error(self):
            if not self.__sklearn_is_fitted__():
                X = self._check_training_data(X)
                models, _ = self._start_models(X)
                optimizer_state, history = None, []
                if self.learning_rate_ is None:
                    self.learning_rate_ = ADAGRAD_STEP_SIZES[1]  # a stream has no first iterations to choose by
            else:
                X = self._check_new_data(X)
                models = self.generative_, self.recognition_
                optimizer_state, history = self._optimizer_state, self.history_
                if self.learning_rate is not None:
                    self.learning_rate_ = self.learning_rate
            learner, state = self._start_learner(models, num_data=len(X), parameter_prior=False)
            if _same_form(optimizer_state, state.optimizer_state):  # not so at the start, nor with another optimizer
                state = state._replace(optimizer_state=optimizer_state)
            trained = train(
                learner,
                state,
                self._source(X),
                np.arange(len(X)),
                key=jax.random.fold_in(jax.random.key(self.seed_), 1 + len(history)),
                batch_size=self.batch_size,
                max_epochs=1,
            )
        self._keep(learner, trained.state)
        samples = history[-1]["samples"] if history else 0
        rows = [{**row, "epoch": len(history) + 1, "samples": samples + row["samples"]} for row in trained.history]
        self.history_, self.stopped_because_ = [*history, *rows], trained.stopped_because
        if self.stopped_because_ == "interrupted":
            raise KeyboardInterrupt  # or the caller's loop over batches could not be left
        return self

    # ---- coding and generation ---------------------------------------------------------------------------------------

    def transform(self, X):
        """Return the posterior mean of z for each row of X, (n, latent_dim)."""
        rows, source, dtype = self._read(X)
        return rowwise(_posterior_mean, self.recognition_, source, rows).astype(dtype)

    @_MethodAndParameter
    def posterior(self, X) -> Distribution:
        """Return q(z|x) for the rows of X: one numpyro distribution with batch shape (n,)."""
        rows, source, _ = self._read(X)
        return promote_batch_shape(rowwise(_encode, self.recognition_, source, rows))

    def inverse_transform(self, Z):
        """Return the decoder's mean for each row of Z, (n, D); bytes fitted as grey levels come back in [0, 1]."""
        check_is_fitted(self)
        Z = check_array(np.asarray(Z), input_name="Z")
        if Z.shape[1] != self._n_features_out:
            raise ValueError(f"Z has shape {Z.shape}; it needs {self._n_features_out} columns, the latent dimensions.")
        return rowwise(_decoder_mean, self.generative_, Source(Z), np.arange(len(Z)))

    def reconstruct(self, X):
        """Return the decoder's mean at the posterior mean of each row of X, (n, D); grey levels are in [0, 1]."""
        return self.inverse_transform(self.transform(X))

    def sample(self, num_samples=1, *, mean=False, random_state=None):
        """Draw new rows from the model.

        Args:
            num_samples: Number of rows.
            mean: Whether to return the decoder's means instead of draws from them.
            random_state: As in scikit-learn; None for the model's own, which gives the same rows each time.

        Returns:
            (num_samples, D).
        """
        check_is_fitted(self)
        check_parameter("num_samples", num_samples, kind=int, low=1)
        key = jax.random.key(self._seed(self.random_state if random_state is None else random_state))
        numbers = np.arange(num_samples)
        draw = _sample_mean if mean else _sample
        return rowwise(draw, self.generative_, Source(numbers[:, None]), numbers, key)

    # ---- how good is it ----------------------------------------------------------------------------------------------

    def score_samples(self, X, *, num_samples=None):
        """Return the estimated lower bound of log p(x) for each row of X, in nats.

        It is estimator B where ``estimator="sgvb-b"``, else A, also for a model that learned by another bound. The
        noise is a function of `random_state` and the row, so the value of a row is always the same, and equal rows have
        equal noise: for data with few distinct rows raise `num_samples`.

        Args:
            X: (n, D).
            num_samples: L; None for the model's own.

        Returns:
            (n,).
        """
        num_samples = self.num_samples if num_samples is None else num_samples
        check_parameter("num_samples", num_samples, kind=int, low=1)
        rows, source, _ = self._read(X)
        bound = sgvb_b if self.estimator == "sgvb-b" else sgvb_a
        key = jax.random.key(self.seed_)
        models = self.generative_, self.recognition_
        return lower_bounds(*models, source, rows, key, bound, num_samples).astype(np.float64)

    def score(self, X, y=None, *, num_samples=None):
        """Return the average estimated lower bound of log p(x) over the rows of X, in nats a datapoint."""
        return float(np.mean(self.score_samples(X, num_samples=num_samples)))

    # ---- saving ------------------------------------------------------------------------------------------------------

    def save(self, folder):
        """Write the model to a folder, as safetensors and JSON; :func:`aevb.load` reads it back."""
        from aevb.persistence import save

        check_is_fitted(self)
        return save(self, folder)

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _check_parameters(self):
        check_parameter("latent_dim", self.latent_dim, kind=int, low=1)
        check_parameter("likelihood", self.likelihood, choices=("auto", *DECODERS))
        check_parameter("activation", self.activation, choices=ACTIVATIONS)
        check_parameter("posterior", self.get_params()["posterior"], choices=("gaussian",))
        check_parameter("learner", self.learner, choices=("aevb",))
        check_parameter("estimator", self.estimator, choices=ESTIMATORS)
        check_parameter("num_samples", self.num_samples, kind=int, low=1)
        check_parameter("batch_size", self.batch_size, kind=int, low=1)
        check_parameter("init", self.init, choices=INITIALIZATIONS)
        check_parameter("max_epochs", self.max_epochs, kind=int, low=1)
        check_parameter("validation_fraction", self.validation_fraction, kind=float, low=0, high=0.9)
        check_parameter("parameter_prior", self.parameter_prior, choices=("normal", None))
        if self.patience is not None:
            check_parameter("patience", self.patience, kind=int, low=1)
        if self.learning_rate is not None:
            check_parameter("learning_rate", self.learning_rate, kind=float, above=0)
        if not isinstance(self.optimizer, optax.GradientTransformation):
            check_parameter("optimizer", self.optimizer, choices=OPTIMIZERS)
        for width in self._hidden_widths():
            check_parameter("hidden", width, kind=int, low=1)

    def _check_training_data(self, X):
        X = self._check_matrix(X, reset=True)
        if len(X) < 2:
            raise ValueError(f"X has n_samples = {len(X)}; learning needs at least 2 rows.")
        is_bytes, largest = X.dtype == np.uint8, X.max()
        auto = "bernoulli" if X.min() >= 0 and (largest <= 1 or is_bytes) else "gaussian"
        likelihood = auto if self.likelihood == "auto" else self.likelihood
        # Bytes are grey levels where values have to lie in [0, 1]; bytes that are all 0 or 1 are that already.
        are_grey_bytes = is_bytes and largest > 1 and likelihood in UNIT_INTERVAL_LIKELIHOODS
        scale = 1 / 255 if are_grey_bytes else 1.0
        check_rows(X, self._support(likelihood), scale=scale)
        if likelihood != "bernoulli" and self.decoder is None:
            check_columns_vary(X)
        self.likelihood_, self.scale_ = likelihood, scale
        return X

    def _check_new_data(self, X):
        check_is_fitted(self)
        X = self._check_matrix(X, reset=False)
        check_rows(X, self._support(self.likelihood_), scale=self._scale_of(X))
        return X

    def _support(self, likelihood):
        """Return the likelihood whose support X has to lie in; a decoder of the user's own has one of its own."""
        return likelihood if self.decoder is None else None

    def _scale_of(self, X):
        return self.scale_ if X.dtype == np.uint8 else 1.0

    def _source(self, X):
        return Source(X, self._scale_of(X))

    def _hidden_widths(self):
        return tuple(np.atleast_1d(np.asarray(self.hidden, dtype=object)).tolist())

    def _check_matrix(self, X: Any, *, reset) -> np.ndarray:
        try:
            matrix: Any = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False)
        except ValueError as error:
            check_number_type(X)  # says where, if that was it
            if np.ndim(X) > 2:
                raise ValueError(f"{error} Flatten images and the like first: X.reshape(len(X), -1).") from None
            raise
        if matrix.dtype in (np.bool_, np.uint8, np.float32, np.float64):
            return matrix
        return matrix.astype(
            np.float32 if matrix.dtype.itemsize <= 2 else np.float64
        )  # JAX would cut 64-bit integers short

    def _read(self, X):
        X = self._check_new_data(X)
        dtype = X.dtype if X.dtype == np.float64 else np.dtype(np.float32)
        return np.arange(len(X)), self._source(X), dtype

    def _seed(self, random_state):
        return int(check_random_state(random_state).randint(2**31 - 1))

    def _start_models(self, X):
        """Return models with their starting values, and the key for what follows."""
        self.seed_ = self._seed(self.random_state)
        init_key, key = jax.random.split(jax.random.key(self.seed_))
        units = column_units(X) if self.likelihood_ == "gaussian" else None
        models = self._build_models(X.shape[1], units, init_key)
        if any(part is not None for part in (self.prior, self.encoder, self.decoder)):
            self._check_models(*models, X.shape[1])
        self.learning_rate_ = self._initial_learning_rate()
        return models, key

    def _build_models(self, data_dim, units, key):
        sizes = data_dim, int(self.latent_dim), tuple(map(int, self._hidden_widths()))
        generative, recognition = _standard_models(sizes, self.likelihood_, self.activation, units, key, self.init)
        # Networks of the user's own come with their own starting values.
        prior = generative.prior if self.prior is None else self.prior
        decoder = generative.decoder if self.decoder is None else self.decoder
        encoder = recognition.encoder if self.encoder is None else self.encoder
        self._n_features_out = self.latent_dim
        return GenerativeModel(prior, decoder), RecognitionModel(encoder)

    def _check_models(self, generative, recognition, data_dim):
        """Refuse parts that do not fit together, and an estimator that cannot treat them, by tracing alone."""
        x, z, key = jnp.zeros(data_dim), jnp.zeros(self.latent_dim), jax.random.key(0)
        parts = {
            "encoder": (lambda: recognition(x), z.shape, "latent_dim"),
            "prior": (generative.latent_distribution, z.shape, "latent_dim"),
            "decoder": (lambda: generative.decoder(z), x.shape, "the number of columns of X"),
        }
        for name, (part, wanted, meaning) in parts.items():
            shape = jax.eval_shape(lambda part=part, name=name: _as_distribution(part(), name).sample(key)).shape
            if shape != wanted:
                raise ValueError(f"{name}: its draws have shape {shape}, and {wanted} is wanted: {meaning}.")
        noise = jax.eval_shape(lambda: recognition.noise(x).sample(key, (self.num_samples,)))
        jax.eval_shape(partial(ESTIMATORS[self.estimator], generative, recognition, x), noise)

    def _initial_learning_rate(self):
        if isinstance(self.optimizer, optax.GradientTransformation):
            return 1.0 if self.learning_rate is None else self.learning_rate
        return DEFAULT_LEARNING_RATES.get(self.optimizer) if self.learning_rate is None else self.learning_rate

    def _start_learner(self, models: tuple[GenerativeModel, RecognitionModel], num_data, parameter_prior=None):
        use_prior = self.parameter_prior == "normal" if parameter_prior is None else parameter_prior
        learner = AEVB(
            skeleton=split(models).skeleton,
            num_data=num_data,
            estimator=ESTIMATORS[self.estimator],
            num_samples=self.num_samples,
            optimizer=OPTIMIZERS[self.optimizer] if isinstance(self.optimizer, str) else self.optimizer,
            parameter_prior=use_prior,
        )
        return learner, learner.init(*models, self.learning_rate_ or 0.0)

    def _hold_out(self, num_rows, key):
        num_held_out = int(self.validation_fraction * num_rows)
        if num_held_out < 10:
            return np.arange(num_rows), None
        # NumPy's, from the same key: one program less to compile before the first step.
        shuffled = np.random.default_rng(np.asarray(jax.random.key_data(key))).permutation(num_rows)
        return np.sort(shuffled[num_held_out:]), np.sort(shuffled[:num_held_out])

    def _keep(self, learner: AEVB, state: AEVBState):
        self.generative_, self.recognition_ = learner.models(state)
        self._optimizer_state = state.optimizer_state

    def get_params(self, deep=True):
        """Return the constructor's arguments by name."""
        return {**super().get_params(deep), "posterior": self.__dict__["posterior"]}

    def __sklearn_is_fitted__(self):
        return hasattr(self, "generative_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@eqx.filter_jit  # one program; each array's own would take a second longer
def _standard_models(sizes, likelihood, activation, units, key, init):
    parameters, constants, skeleton = split(
        standard_models(*sizes, likelihood=likelihood, activation=activation, units=units)
    )
    return join(initialize(parameters, key, init), constants, skeleton)


def _same_form(one, other):
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        left.shape == right.shape for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


@contextmanager
def _unchanged_on_error(estimator):
    """Give an estimator its attributes back if what is done inside fails: a refused `fit` changes nothing."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def _as_distribution(value, name):
    if not isinstance(value, Distribution):
        raise TypeError(f"{name}: gives a {type(value).__name__}; it has to be a numpyro distribution.")
    return value


def _posterior_mean(recognition, x):
    return recognition(x).mean


def _encode(recognition, x):
    return recognition(x)


def _decoder_mean(generative, z):
    return generative.decoder(z).mean


def _sample(generative, number, key):
    return generative.sample(_nth_key(key, number))


def _sample_mean(generative, number, key):
    return generative.sample(_nth_key(key, number), mean=True)


def _nth_key(key, number):
    return jax.random.fold_in(key, number[0].astype(jnp.uint32))
