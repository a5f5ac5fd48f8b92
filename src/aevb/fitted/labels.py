"""Classify rows, and generate rows of a class, with a fitted model that has labels.

M1, M2 and M1+M2 are the models of Kingma, Rezende, Mohamed and Welling, "Semi-supervised learning with deep generative
models" (2014).
"""

from typing import Any

import jax
import numpy as np

from aevb.arrays import num_rows
from aevb.fitted import coding
from aevb.fitted.model import FittedModel
from aevb.models import Datapoint, FeatureEncoder
from aevb.training import rowwise

POOL, MIN_POOL = 50, 10_000  # draws of z from which those of a class are chosen: for each row, and at least


def label_probabilities(model: FittedModel, X: Any) -> np.ndarray:
    """Return q(y|x) for the rows of X, (n, K); with a model of features, at the means of their posterior."""
    if model.features is not None:
        X = coding.posterior_means(model.features, X)[:, _places(model)]
    rows = Datapoint(X, given=np.full((num_rows(X), 1), np.nan))
    return rowwise(_probabilities, model.recognition, model.source(rows), np.arange(num_rows(X)))


def _probabilities(recognition, x):
    return jax.nn.softmax(recognition.encoder.labels(x).logits)


def sample_of_labels(
    model: FittedModel,
    num_samples: int,
    places: np.ndarray | None = None,
    *,
    mean: bool = False,
    random_state: Any = None,
) -> np.ndarray:
    """Draw new rows of given classes, in the units of the data: (num_samples, D).

    Args:
        model: The model.
        num_samples: Number of rows.
        places: (num_samples,), the places of their labels among the classes; None to draw them as well.
        mean: Whether to return the decoder's means instead of draws from them.
        random_state: As in scikit-learn; None for the model's own.
    """
    options = {"mean": mean, "random_state": random_state}
    generator = np.random.default_rng(np.asarray(jax.random.key_data(model.key(random_state))))
    if isinstance(model.recognition.encoder, FeatureEncoder):
        if places is None:
            return coding.sample(model, num_samples, **options)
        return coding.sample_at(model, _codes_of_labels(model, places, generator), **options)
    if places is None:
        shares = np.asarray(model.generative.labels.probs, np.float64)
        places = generator.choice(len(shares), num_samples, p=shares / shares.sum())
    rows = coding.sample(model, num_samples, given=np.asarray(places, float)[:, None], **options)
    if model.features is None:
        return rows
    key = jax.random.fold_in(model.key(random_state), 1)  # not the one that drew the codes of M2
    codes = np.array(model.features.generative.latent_distribution().sample(key, (num_samples,)))
    codes[:, _places(model)] = rows
    return coding.sample_at(model.features, codes, **options)


def _places(model):
    """Return the places of the codes that a model was learned from; it knows nothing of the others."""
    return slice(None) if model.codes is None else list(model.codes)


def _codes_of_labels(model, places, generator):
    """Return draws from p(z|y), which is proportional to p(z) q(y|z), for the place of each label (n,).

    They are chosen without replacement from draws of p(z), with probabilities in proportion to q(y|z).
    """
    size = max(POOL * len(places), MIN_POOL)
    key = jax.random.key(int(generator.integers(2**31)))
    z = np.asarray(model.generative.latent_distribution().sample(key, (size,)), np.float64)
    layer = model.recognition.encoder.label.network.layers[0]
    logits = z @ np.asarray(layer.weight, np.float64).T + np.asarray(layer.bias, np.float64)
    log_q = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    chosen = np.empty(len(places), int)
    for place in np.unique(places).astype(int):
        is_asked = places == place
        keys = log_q[:, place] + generator.gumbel(size=size)  # the largest n are n draws without replacement
        chosen[is_asked] = np.argsort(-keys)[: np.count_nonzero(is_asked)]
    return z[chosen].astype(np.float32)
