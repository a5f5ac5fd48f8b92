"""Semi-supervised classification: a deep generative model in which labels may be unknown."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from aevb.arguments import check_parameter
from aevb.arrays import num_rows
from aevb.data.binarization import DynamicBinarization, levels_of
from aevb.data.class_labels import read_classes, read_labels
from aevb.data.frames import frame_of, is_frame
from aevb.data.image_arrays import are_images, flat_images
from aevb.data.reading import read_matrix
from aevb.data.weights import read_weights
from aevb.errors import shown
from aevb.fitted import labels
from aevb.fitted.model import FittedModel
from aevb.models import Datapoint
from aevb.settings import CLASSIFIER_SETTINGS, with_arguments
from aevb.vae.base import ModelEstimator
from aevb.vae.checks import check_settings
from aevb.vae.conventions import unchanged_on_error
from aevb.vae.estimator import VAE
from aevb.vae.label_models import FITS, learn_features
from aevb.vae.label_rows import LabeledRows, batch_weights, label_format
from aevb.vae.learning import Watch
from aevb.vae.streaming import Stream, check_batch, check_first_batch, continued, first_model, learn_batch


@with_arguments(CLASSIFIER_SETTINGS)
class VAEClassifier(ClassifierMixin, ModelEstimator):
    r"""Classification by a generative model, which learns from rows without labels too.

    .. math:: p(x, y) = p(y) \int p(z)\, p(x | z, y)\, dz, \qquad q(y|x), \quad q(z|x, y)

    Rows without a label have y = -1; their bound is summed over the labels, see
    :func:`aevb.estimators.marginal_label`. Predictions are q(y|x). This is model M2; M1 and M1+M2 learn from the z of a
    :class:`aevb.VAE`.

    (Kingma, Rezende, Mohamed and Welling, "Semi-supervised learning with deep generative models", 2014.)

    Args: described in :mod:`aevb.settings`.

    Attributes:
        classes_: (K,), the labels in order.
        model_: The fitted model, an immutable :class:`aevb.fitted.FittedModel` of the rows given their labels; of M1 it
            is that of the rows, and of M1+M2 that of their z.
        features_: Of M1+M2, the fitted `VAE` whose z are learned from.
        history_: One row (a dict) per epoch, or per several epochs of small data. ``lower_bound`` is the objective of
            the rows as they are visited, with the classifier's term; rows with labels are visited more often.
        stopped_because_: See :class:`aevb.VAE`.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> from aevb import VAEClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> y[100:] = -1
        >>> model = VAEClassifier(hidden=(50,), max_epochs=3, progress=False).fit(X / 16, y)
        >>> model.predict_proba(X / 16).shape, model.sample(2, y=3).shape
        ((1797, 10), (2, 64))
    """

    def __init__(
        self,
        model: str = "m2",
        *,
        features: Any = None,
        latent_dim: Any = 10,
        likelihood: Any = "auto",
        label_prior: Any = "uniform",
        classifier_weight: float = 0.1,
        hidden: int | Sequence[int] | None = None,
        network: str = "mlp",
        image_shape: Sequence[int] | None = None,
        estimator: str = "sgvb-b",
        num_samples: int = 1,
        label_annealing: Any = "auto",
        activation: str = "gelu",
        posterior: str = "gaussian",
        batch_size: int | str = "auto",
        optimizer: Any = "adam",
        learning_rate: float | None = None,
        max_epochs: int | str = "auto",
        validation_fraction: float | str = "auto",
        patience: int | str = "auto",
        parameter_prior: Any = "auto",
        random_state: Any = 0,
        progress: Any = True,
    ):
        self.model = model
        self.features = features
        self.latent_dim = latent_dim
        self.likelihood = likelihood
        self.label_prior = label_prior
        self.classifier_weight = classifier_weight
        self.hidden = hidden
        self.network = network
        self.image_shape = image_shape
        self.estimator = estimator
        self.num_samples = num_samples
        self.label_annealing = label_annealing
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
        """Fit the model to the rows of X, with the labels that are known.

        Args:
            X: (N, D), as in :meth:`aevb.VAE.fit`, in memory: an array, images (N, height, width) or (N, height, width,
                channels), a data frame, a file, or grey levels as ``binarize(X, "dynamic")``.
            y: (N,), labels: whole numbers or text; -1 for rows without one.
            sample_weight: (N,), weights of the rows, at least 0; None if they are equal.
            checkpoint: A folder in which the run is saved during training, see :meth:`aevb.VAE.fit`.
            checkpoint_seconds: Time between two saves.
            callbacks: What is called during training, see :mod:`aevb.callbacks`.

        Returns:
            self.
        """
        self._check_parameters()
        watch = Watch.of(checkpoint, checkpoint_seconds, callbacks)
        with unchanged_on_error(self):
            self._given_shape = None
            is_drawn = isinstance(X, DynamicBinarization)
            X = np.asarray(X) if (has_images := not is_drawn and are_images(X)) else X
            is_read_later = is_drawn or has_images or is_frame(frame_of(X))
            rows = X if is_read_later else read_matrix(self, X, reset=True)
            length = len(rows) if is_frame(rows) else num_rows(levels_of(rows))
            labeled = LabeledRows.of(y, length, self.classifier_weight, sample_weight)
            fit = FITS[self.model](self, rows, labeled, sample_weight, watch)
        self._keep(fit.model, fit.optimizer_state, Stream())
        self._set_columns_of(fit.model)
        if fit.features is not None:
            self.features_ = fit.features
        if fit.error is not None:
            raise fit.error
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Continue training with one pass through a batch of rows.

        Args:
            X: (n, D).
            y: (n,), -1 for rows without a label; a batch may have none at all.
            classes: All classes; needed at the first call of an unfitted model.

        Returns:
            self.
        """
        self._check_parameters()
        is_first = not self.__sklearn_is_fitted__()
        if is_first and classes is None:
            raise ValueError("classes: give all classes at the first call of partial_fit.")
        known = read_classes(classes) if is_first else self.classes_
        with unchanged_on_error(self):
            arguments = self._arguments()
            if is_first:
                X, begun = flat_images(self, X, reset=True), None
                check_first_batch(X, arguments)
                X = read_matrix(self, X, reset=True)
            else:
                X, begun = self._check_new_data(X), continued(self.model_, arguments)
            _, places = read_labels(y, num_rows(X), known)
            features, rows = learn_features(self, X) if self.model == "m1+m2" else (None, X)
            if begun is None:
                format = label_format(np.arange(len(known), dtype=float), known)
                of_rows = arguments if features is None else arguments.replaced(likelihood="gaussian")
                begun = first_model(self, of_rows, read_matrix(self, rows, reset=True), format)
            else:
                check_batch(self.model_, rows)
            model, design = begun
            design = design.weighting_labels(batch_weights(places, len(known), self.classifier_weight))
            stream, before = getattr(self, "_stream", Stream()), getattr(self, "_optimizer_state", None)
            rows = Datapoint(rows, given=places[:, None])
            model, stream, trained = learn_batch(stream, design, model, rows, before)
            if features is not None:
                model = replace(model, features=features.model_, arguments=arguments)
                self.features_ = features
                self._set_columns_of(model)
        self._keep(model, trained.state.optimizer_state, stream)
        return self

    # ---- prediction --------------------------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return q(y|x) for each row of X, (n, K), in the order of `classes_`."""
        rows = self._check_new_data(X)
        return labels.label_probabilities(self.model_, rows)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable label of each row of X, (n,)."""
        most_probable = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[most_probable]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose label is predicted correctly.

        Args:
            X: (n, D).
            y: (n,), labels. Rows without one (-1) are left out.
            sample_weight: (n,), weights of the rows, at least 0; None if they are equal.
        """
        rows = self._check_new_data(X)
        _, places = read_labels(y, num_rows(rows), self.classes_, may_be_new=True)
        is_known = ~np.isnan(places)
        if not is_known.any():
            raise ValueError(
                "y: all rows are unlabeled (-1): there is nothing to compare predictions with. Give labels."
            )
        weights = None if sample_weight is None else read_weights(sample_weight, num_rows(rows))[is_known]
        predicted = np.argmax(labels.label_probabilities(self.model_, rows), axis=1)
        return float(np.average((predicted == places)[is_known], weights=weights))

    def sample(self, num_samples: int = 1, *, y: Any = None, mean: bool = False, random_state: Any = None) -> Any:
        """Draw new rows from the model.

        Args:
            num_samples: Number of rows.
            y: Their label, one for all or one for each; None for labels drawn from p(y).
            mean: Whether to return the decoder's means instead of draws from them.
            random_state: As in scikit-learn; None for the model's own, which returns the same rows each time.
        """
        check_is_fitted(self)
        check_parameter("num_samples", num_samples, kind=int, low=1)
        places = None
        if y is not None:
            if np.ndim(y) and len(y) != num_samples:
                raise ValueError(
                    f"y has {len(y):,} labels, but num_samples={num_samples:,}. Give one for all rows, or one for each."
                )
            asked = np.array(np.asarray(y).ravel().tolist() * (num_samples if np.ndim(y) == 0 else 1), object)
            _, places = read_labels(asked, num_samples, self.classes_)
            if np.isnan(places).any():
                raise ValueError(f"y={shown(y)}: -1 is not a class. Give labels, or leave y out to draw them too.")
        options = {"mean": mean, "random_state": random_state}
        return self._as_rows(labels.sample_of_labels(self.model_, num_samples, places, **options))

    # ---- private -----------------------------------------------------------------------------------------------------

    def _check_parameters(self):
        check_settings(self._arguments(), CLASSIFIER_SETTINGS)
        if self.features is not None and (not isinstance(self.features, VAE) or self.model == "m2"):
            needs = "a VAE" if self.model != "m2" else "model='m1' or 'm1+m2'"
            raise ValueError(f"features={shown(self.features)} needs {needs}. Leave it out, or change it.")
        for name, default in (("network", "mlp"), ("image_shape", None)):
            if self.model == "m1+m2" and getattr(self, name) != default:
                value = shown(getattr(self, name))
                raise ValueError(
                    f"{name}={value}: the networks of model='m1+m2' that read images are those of its features. Give "
                    f"features=VAE({name}={value}, ...) instead."
                )

    @property
    def classes_(self) -> np.ndarray:
        """The labels in order."""
        return np.array(self.model_.given.columns[0].levels)

    @classmethod
    def _of(cls, model: FittedModel, optimizer_state) -> "VAEClassifier":
        """Return the estimator of a model that was loaded."""
        classifier = cls(**model.arguments.options(CLASSIFIER_SETTINGS))
        classifier._set_columns_of(model)
        classifier._keep(model, optimizer_state, Stream())
        if model.features is not None:
            classifier.features_ = VAE._of(model.features, None)
        return classifier

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
