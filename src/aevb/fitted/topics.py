"""The topics of a model of word counts, and how well it predicts words."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpyro.distributions import Dirichlet

from aevb.arguments import check_parameter
from aevb.arrays import num_rows
from aevb.distributions import has_real_support
from aevb.errors import WrongTypeError
from aevb.fitted.likelihoods import lower_bound_terms
from aevb.fitted.model import FittedModel
from aevb.models import TopicDecoder, is_sparse

MAX_ROTATIONS, TOLERANCE = 500, 1e-6  # of varimax: iterations, and the relative improvement at which they end


def topics(model: FittedModel, vocabulary: Iterable[str] | None, num_words: int = 10) -> list[list[str]]:
    """Return the words whose probabilities each topic raises most, for each topic; see :meth:`aevb.VAE.topics`.

    Args:
        model: A model of word counts.
        vocabulary: (D,), the words in the order of the columns; None for the names of the columns.
        num_words: Number of words for each topic.
    """
    weights = topic_weights(model)
    words = _checked_words(model, vocabulary)
    check_parameter("num_words", num_words, kind=int, low=1, high=len(words))
    return [[words[place] for place in np.argsort(-topic, kind="stable")[:num_words]] for topic in weights]


def topic_weights(model: FittedModel) -> np.ndarray:
    r"""Return how much each topic changes the log probabilities of the words, (J, D), the strongest topic first.

    These are the decoder's weights W, for z on the simplex minus their average over topics. For the prior N(0, I),
    which prefers no direction of z, they are W rotated by :func:`varimax`, with signs that make the largest weights
    positive. The strength of a topic is the sum of its squared weights.
    """
    decoder: Any = model.point_generative.decoder
    if not isinstance(decoder, TopicDecoder):
        raise ValueError(f"topics: needs a model with likelihood='multinomial', but this one has {model.likelihood!r}.")
    weights = np.asarray(decoder.weights, np.float64)
    prior = model.generative.latent_distribution()
    if isinstance(prior, Dirichlet):
        weights = weights - weights.mean(axis=0)
    elif has_real_support(prior):
        weights = varimax(weights)
        weights *= np.where(np.sum(weights**3, axis=1) < 0, -1.0, 1.0)[:, None]
    return weights[np.argsort(-np.sum(weights**2, axis=1), kind="stable")]


def varimax(weights: np.ndarray) -> np.ndarray:
    r"""Rotate weights (J, D) so that each row has few large entries.

    .. math:: \max_R \sum_{j} \mathrm{Var}_d\left[ (R W)_{jd}^2 \right], \quad R^T R = I

    (Kaiser, "The varimax criterion for analytic rotation in factor analysis", 1958.)

    Args:
        weights: W.

    Example:
        >>> turned = np.array([[0.6, 0.8], [-0.8, 0.6]]) @ np.array([[3.0, 3.0, 0.0, 0.0], [0.0, 0.0, 2.0, 2.0]])
        >>> np.sort(np.abs(varimax(turned)).round(3).max(axis=1))
        array([2., 3.])
    """
    rotated, criterion = weights, 0.0
    for _ in range(MAX_ROTATIONS):
        gradient = weights @ (rotated**3 - rotated * np.mean(rotated**2, axis=1, keepdims=True)).T
        left, singular, right = np.linalg.svd(gradient)
        rotated = (left @ right).T @ weights
        if singular.sum() <= criterion * (1 + TOLERANCE):
            break
        criterion = singular.sum()
    return rotated


def perplexity(model: FittedModel, X: Any, num_samples: int = 1, *, progress: bool = False) -> float:
    r"""Return an upper bound on the perplexity of documents X (n, D); see :meth:`aevb.VAE.perplexity`."""
    if not isinstance(model.point_generative.decoder, TopicDecoder):
        raise ValueError(f"perplexity: needs likelihood='multinomial', but this model has {model.likelihood!r}.")
    num_words = float(X.sum())
    if not num_words:
        raise ValueError(f"X: the {num_rows(X)} documents have no words, so there is no perplexity. Give others.")
    bound = lower_bound_terms(model, X, num_samples, progress=progress).lower_bound.astype(np.float64).sum()
    return float(np.exp(-(bound - log_orders(X)) / num_words))


def log_orders(X: Any) -> float:
    """Return the sum of the documents' log multinomial coefficients, in float64; X is (n, D), dense or sparse."""
    from scipy.special import gammaln

    counts = np.asarray(X.data if is_sparse(X) else X, np.float64)
    lengths = np.asarray(X.sum(axis=1), np.float64)
    return float(gammaln(lengths + 1).sum() - gammaln(counts + 1).sum())


def _checked_words(model, vocabulary) -> list[str]:
    num_columns = model.matrix.num_columns
    if vocabulary is None:
        columns = model.matrix.columns
        return [str(number) for number in range(num_columns)] if columns is None else list(columns)
    if isinstance(vocabulary, str) or not isinstance(vocabulary, Iterable):
        raise WrongTypeError(f"vocabulary={vocabulary!r:.60}: expected a list of {num_columns} words.")
    words = [str(word) for word in vocabulary]
    if len(words) != num_columns:
        raise ValueError(
            f"vocabulary: has {len(words)} words, but the model has {num_columns} columns. Give a word for each "
            "column, in their order, such as vectorizer.get_feature_names_out()."
        )
    return words
