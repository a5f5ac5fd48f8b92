"""The codes of a fitted `VAE` as the rows of another model: M1 and M1+M2 of Kingma et al. (2014)."""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from aevb.arrays import num_rows, on_device
from aevb.data.request import DataRequest
from aevb.data.training_data import TrainingData, open_training_data
from aevb.fitted import FittedModel, coding
from aevb.inference.diagnostics import active_codes
from aevb.models import Conversion, Datapoint, Gaussians, with_classifier
from aevb.training import Source

MAX_ITERATIONS = 1000  # of logistic regression


class Features(NamedTuple):
    """q(z|x) of rows: what is known of the codes that a model is to learn."""

    mean: np.ndarray  # (n, J)
    std: np.ndarray  # (n, J)

    @classmethod
    def of(cls, model: FittedModel, X: Any) -> "Features":
        """Return those of rows X, as the model's estimator reads them."""
        q = coding.posterior(model, X)
        return cls(np.asarray(q.mean), np.sqrt(np.asarray(q.variance)))

    def active(self, model: FittedModel) -> tuple[int, ...]:
        """Return the places of the codes that depend on x, by :func:`~aevb.inference.diagnostics.active_codes`.

        The others are noise, which a model of the codes would have to learn as well: with 29 of them next to 21 active
        ones, M1+M2 had 26% of the MNIST test images wrong after 20 epochs (100 labels), without them 7%.
        """
        found = np.flatnonzero(active_codes(self.mean, model.generative.latent_distribution()).is_active)
        return tuple(found.tolist()) or tuple(range(self.mean.shape[1]))

    def at(self, places: tuple[int, ...] | None) -> "Features":
        """Return some of the codes; None for all."""
        return self if places is None else Features(self.mean[:, places], self.std[:, places])

    def drawn(self, seed: int) -> np.ndarray:
        """Return a draw of each code, (n, J)."""
        noise = np.random.default_rng(seed).standard_normal(self.mean.shape)
        return (self.mean + self.std * noise).astype(np.float32)


def features_data(estimator: Any, features: Features, request: DataRequest, key: Any) -> TrainingData:
    """Return codes ready for training, with a new draw of each at each visit.

    Units and held-out rows are those of a single draw. A code that says nothing of x has a mean near 0 and a standard
    deviation of 1: units of the means would magnify its noise.
    """
    numbers = np.asarray(jax.random.key_data(key())).tolist()
    data = open_training_data(estimator, features.drawn(numbers[-1]), request, key)
    feed: Any = data.feed
    used = slice(None) if feed.names.numbers is None else feed.names.numbers
    stored = np.concatenate([features.mean[used], features.std[used]], axis=1)
    conversion = Conversion(Gaussians(), given=feed.source.conversion.given)
    source = Source(Datapoint(stored, given=feed.source.rows.given), conversion)
    if feed.validation_rows is None:
        return data._replace(feed=replace(feed, source=source))
    weights = None if feed.weights is None else feed.weights[feed.validation_rows]
    return data._replace(feed=replace(feed, source=source, validation_source=feed.source, validation_weights=weights))


def with_linear_classifier(model: FittedModel, X: Any, places: np.ndarray, num_labels: int) -> FittedModel:
    """Return a model with a classifier of its codes: multinomial logistic regression on their posterior means.

    Args:
        model: The model.
        X: Rows with labels, as its estimator reads them.
        places: (n,), the places of their labels among the classes.
        num_labels: K.
    """
    from sklearn.linear_model import LogisticRegression

    found = LogisticRegression(max_iter=MAX_ITERATIONS).fit(coding.posterior_means(model, X), places.astype(int))
    J = model.latent_dim
    weight, bias = np.zeros((num_labels, J), np.float32), np.full(num_labels, -np.inf, np.float32)
    if num_labels == 2:
        weight[1], bias[:] = found.coef_[0], (0, found.intercept_[0])
    else:
        weight[found.classes_], bias[found.classes_] = found.coef_, found.intercept_
    generative, recognition = with_classifier((model.generative, model.recognition), num_labels, J)
    layer = recognition.encoder.label.network.layers[0]
    filled = eqx.tree_at(lambda layer: (layer.weight, layer.bias), layer, (on_device(weight), on_device(bias)))
    recognition = eqx.tree_at(lambda part: part.encoder.label.network.layers[0], recognition, filled)
    assert num_rows(X) == len(places)
    return replace(model, generative=generative, recognition=recognition)
