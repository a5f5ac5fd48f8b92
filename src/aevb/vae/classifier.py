"""Semi-supervised classification: a deep generative model in which labels may be unknown."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from aevb.arguments import check_parameter
from aevb.arrays import num_rows
from aevb.data.class_labels import read_labels
from aevb.data.frames import TableFormat, frame_of, is_frame
from aevb.data.given import GivenData
from aevb.data.reading import read_matrix
from aevb.data.request import DataRequest
from aevb.data.training_data import open_training_data
from aevb.data.weights import read_weights
from aevb.fitted import coding
from aevb.fitted.model import FittedModel
from aevb.models import Datapoint
from aevb.settings import CLASSIFIER_SETTINGS, with_arguments
from aevb.training import Resident, rowwise
from aevb.vae.base import ModelEstimator
from aevb.vae.checks import check_checkpoint, check_settings
from aevb.vae.conventions import unchanged_on_error
from aevb.vae.learning import Saving, Task, learn
from aevb.vae.streaming import Stream, check_batch, check_first_batch, continued, first_model, learn_batch


@with_arguments(CLASSIFIER_SETTINGS)
class VAEClassifier(ClassifierMixin, ModelEstimator):
    r"""Classification by a generative model, which learns from rows without labels too.

    .. math:: p(x, y) = p(y) \int p(z)\, p(x | z, y)\, dz, \qquad q(y|x), \quad q(z|x, y)

    Rows without a label have y = -1; their bound is summed over the labels, see
    :func:`aevb.estimators.marginal_label`. Predictions are q(y|x).

    (Kingma, Rezende, Mohamed and Welling, "Semi-supervised learning with deep generative models", 2014.)

    Args: described in :mod:`aevb.settings`.

    Attributes:
        classes_: (K,), the labels in order.
        model_: The fitted model, an immutable :class:`aevb.fitted.FittedModel` of the rows given their labels.
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
        model="m2",
        *,
        latent_dim=10,
        likelihood="auto",
        label_prior="uniform",
        classifier_weight=0.1,
        hidden=(500,),
        estimator="sgvb-b",
        num_samples=1,
        activation="gelu",
        posterior="gaussian",
        batch_size="auto",
        optimizer="adam",
        learning_rate=None,
        max_epochs="auto",
        validation_fraction="auto",
        patience="auto",
        parameter_prior="auto",
        random_state=0,
        progress=True,
    ):
        self.model = model
        self.latent_dim = latent_dim
        self.likelihood = likelihood
        self.label_prior = label_prior
        self.classifier_weight = classifier_weight
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

    def fit(self, X, y, sample_weight=None, *, checkpoint=None, checkpoint_seconds=60.0):
        """Fit the model to the rows of X, with the labels that are known.

        Args:
            X: (N, D), as in :meth:`aevb.VAE.fit`, in memory: an array, a data frame, or a file.
            y: (N,), labels: whole numbers or text; -1 for rows without one.
            sample_weight: (N,), weights of the rows, at least 0; None if they are equal.
            checkpoint: A folder in which the run is saved during training, see :meth:`aevb.VAE.fit`.
            checkpoint_seconds: Time between two saves.

        Returns:
            self.
        """
        self._check_parameters()
        check_checkpoint(checkpoint, checkpoint_seconds)

        def task(key):
            rows = X if is_frame(frame_of(X)) else read_matrix(self, X, reset=True)
            classes, places = read_labels(y, len(rows) if is_frame(rows) else num_rows(rows))
            format, given, weights, scale = self._labels(classes, places, sample_weight)
            request = DataRequest(
                self.likelihood,
                False,
                self.batch_size,
                self.validation_fraction,
                self._shows_progress,
                sample_weight=weights,
                given=GivenData(format, given),
            )
            data = open_training_data(self, rows, request, key)
            data = data._replace(feed=_without_labels_held_out(data.feed, given))
            return Task(data, format, scale, data.table)

        with unchanged_on_error(self):
            learned = learn(self, self._arguments(), task, Saving(checkpoint, checkpoint_seconds))
        self._keep(learned.model, learned.trained.state.optimizer_state, Stream())
        learned.raise_error()
        return self

    def partial_fit(self, X, y, classes=None):
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
        with unchanged_on_error(self):
            if is_first:
                check_first_batch(X, self._arguments())
                X = read_matrix(self, X, reset=True)
                classes, places = read_labels(y, num_rows(X), classes)
                format = _label_format(np.arange(len(classes), dtype=float), classes)
                model, design = first_model(self, self._arguments(), X, format)
            else:
                X = self._check_new_data(X)
                _, places = read_labels(y, num_rows(X), self.classes_)
                check_batch(self.model_, X)
                model, design = continued(self.model_, self._arguments())
            alpha = self.classifier_weight * len(places) / max(np.count_nonzero(~np.isnan(places)), 1)
            design = design.weighting_labels(float(alpha), 1.0)
            rows = Datapoint(X, given=places[:, None])
            stream, before = getattr(self, "_stream", Stream()), getattr(self, "_optimizer_state", None)
            model, stream, trained = learn_batch(stream, design, model, rows, before)
        self._keep(model, trained.state.optimizer_state, stream)
        return self

    # ---- prediction --------------------------------------------------------------------------------------------------

    def predict_proba(self, X):
        """Return q(y|x) for each row of X, (n, K), in the order of `classes_`."""
        X = self._check_new_data(X)
        rows = Datapoint(X, given=np.full((num_rows(X), 1), np.nan))
        source = self.model_.source(rows)
        return rowwise(_label_probabilities, self.model_.recognition, source, np.arange(num_rows(X)))

    def predict(self, X):
        """Return the most probable label of each row of X, (n,)."""
        most_probable = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[most_probable]

    def sample(self, num_samples=1, *, y=None, mean=False, random_state=None):
        """Draw new rows from the model.

        Args:
            num_samples: Number of rows.
            y: Their label, one for all or one for each; None for labels drawn from p(y).
            mean: Whether to return the decoder's means instead of draws from them.
            random_state: As in scikit-learn; None for the model's own, which returns the same rows each time.
        """
        check_is_fitted(self)
        check_parameter("num_samples", num_samples, kind=int, low=1)
        if y is None:
            shares = np.asarray(self.model_.generative.labels.probs, np.float64)
            generator = np.random.default_rng(np.asarray(jax.random.key_data(self.model_.key(random_state))))
            places = generator.choice(len(shares), num_samples, p=shares / shares.sum()).astype(float)
        else:
            labels = np.array(np.asarray(y).ravel().tolist() * (num_samples if np.ndim(y) == 0 else 1), object)
            _, places = read_labels(labels, num_samples, self.classes_)
        options = {"mean": mean, "random_state": random_state}
        rows = coding.sample(self.model_, num_samples, given=places[:, None], **options)
        return self._as_rows(rows)

    # ---- private -----------------------------------------------------------------------------------------------------

    def _check_parameters(self):
        check_settings(self._arguments(), CLASSIFIER_SETTINGS)

    @property
    def classes_(self) -> np.ndarray:
        """The labels in order."""
        return np.array(self.model_.given.columns[0].levels)

    def _labels(self, classes, places, sample_weight):
        """Return the labels' format and stored numbers, the weights of the rows, and those of the labels.

        Rows with labels are visited alpha times as often, their classification weight, but not more often in all than
        the others, and their terms divided by it: few of them with a large weight would make the gradient noisy.
        """
        is_known = ~np.isnan(places)
        num_known = np.count_nonzero(is_known)
        alpha = float(self.classifier_weight * len(places) / num_known)
        visits = float(max(1.0, min(alpha, len(places) / num_known - 1)))
        weights = np.where(is_known, visits, 1.0)
        if sample_weight is not None:
            weights = weights * read_weights(sample_weight, len(places))
        return _label_format(places[is_known], classes), places[:, None], weights, (alpha, visits)

    @classmethod
    def _of(cls, model: FittedModel, optimizer_state) -> "VAEClassifier":
        """Return the estimator of a model that was loaded."""
        classifier = cls(**{name: getattr(model.arguments, name) for name in CLASSIFIER_SETTINGS})
        classifier._set_columns_of(model)
        classifier._keep(model, optimizer_state, Stream())
        return classifier

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _label_format(places: np.ndarray, classes: np.ndarray) -> TableFormat:
    """Return the format of a label, a categorical column of the places of these classes."""
    table = TableFormat.learn(places[:, None], "categorical")
    return replace(table, columns=(replace(table.columns[0], levels=tuple(classes.tolist())),))


def _label_probabilities(recognition: Any, x: Any) -> Any:
    return jax.nn.softmax(recognition.encoder.labels(x).logits)


def _without_labels_held_out(feed: Any, given: np.ndarray) -> Any:
    """Return a feed that holds out rows without labels only, if there are enough: labels are few, and to be learned."""
    if not isinstance(feed, Resident) or feed.validation_rows is None:
        return feed
    numbers = feed.names.numbers
    is_known = ~np.isnan(given[:, 0] if numbers is None else given[numbers, 0])
    kept = feed.validation_rows[~is_known[feed.validation_rows]]
    if len(kept) < 10:
        return feed
    back = feed.validation_rows[is_known[feed.validation_rows]]
    return replace(feed, train_rows=np.sort(np.concatenate([feed.train_rows, back])), validation_rows=kept)
