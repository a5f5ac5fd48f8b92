"""Models whose label y is a latent variable where it is unknown: the bound of a conditional model, summed over y.

Paper: §7.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from aevb.estimators.terms import Terms
from aevb.models import Datapoint
from aevb.models.labels import noise_with_label, without_label


@cache
def beside_label(estimator: Callable[..., Terms], classification: float = 0.0, visits: float = 1.0) -> Callable:
    r"""Turn an estimator of a bound on log p(x) into one that also learns a classifier q(y|x) of the codes.

    .. math:: L(x) + \alpha \log q(y|x), \qquad \log q(y|x) = 0 \text{ if y is unknown}

    The classifier's gradient does not reach the encoder, see :class:`~aevb.models.labels.FeatureEncoder`: this is model
    M1 of Kingma et al. (2014), features first and then a classifier, learned from the same batches.

    Args:
        estimator: Of the bound on log p(x) and its terms.
        classification: :math:`\alpha`.
        visits: See :func:`marginal_label`.
    """

    def terms(generative: Any, recognition: Any, x: Any, epsilon: Any) -> Terms:
        scale = jnp.where(jnp.sum(x.given) > 0, 1 / visits, 1.0)
        of_x = estimator(generative, recognition, without_label(x), epsilon)
        log_q = jax.nn.log_softmax(recognition.encoder.labels(x).logits)
        more = classification * jnp.sum(x.given * log_q)
        parts = (None if term is None else scale * term for term in of_x[1:])
        return Terms(scale * (of_x.lower_bound + more), *parts)

    terms.summed = estimator  # pyright: ignore[reportFunctionMemberAccess]
    return terms


@cache  # the same function for the same arguments, so that its compiled program is reused
def marginal_label(
    estimator: Callable[..., Terms], classification: float = 0.0, visits: float = 1.0, num_summed: int | None = None
) -> Callable:
    r"""Turn an estimator of a bound on log p(x|y) into one of rows with labels, and of rows without.

    .. math:: \log p(x, y) \ge L(x, y) = \log p(y) + L(x|y), \qquad
        \log p(x) \ge \sum_y q(y|x) \left[ L(x, y) - \log q(y|x) \right]

    The first is for rows with a label. With a classification weight their objective also has the term
    :math:`\alpha \log q(y|x)`: otherwise q(y|x) would learn from rows without labels only (Kingma et al.,
    "Semi-supervised learning with deep generative models", 2014, eqs. 6 to 9). The noise of z is the same for all
    labels.

    With many labels the sum is exact for the most probable ones, and the rest is estimated by a draw from q(y|x) among
    them, with the score-function gradient and, as its baseline, the average of the terms that are summed (Liu et al.,
    "Rao-Blackwellized stochastic gradients for discrete distributions", 2019). Value and gradient have the expectation
    of the whole sum.

    Args:
        estimator: Of the bound on log p(x|y) and its terms, such as :func:`aevb.estimators.terms_b`. The datapoint's
            `given` is an indicator of the label, (K,), zero if it is unknown.
        classification: :math:`\alpha`; 0 for the bound alone.
        visits: How many times as often as other rows those with labels are visited. Their objective is divided by it.
        num_summed: How many labels are summed over; None for all. Otherwise the noise is that of
            :func:`~aevb.models.labels.noise_with_label`.

    Returns:
        A function of a :class:`~aevb.models.LabelModel`, a recognition model with a
        :class:`~aevb.models.LabelEncoder`, one datapoint and L draws of the noise.
    """

    def terms(generative: Any, recognition: Any, x: Any, epsilon: Any) -> Terms:
        label = x.given
        K, is_known = label.shape[-1], jnp.sum(label) > 0
        log_q, log_p = (jax.nn.log_softmax(p.logits) for p in (recognition.encoder.labels(x), generative.labels))
        weights = jnp.where(is_known, label, jnp.exp(log_q))
        noise, places = epsilon, jnp.arange(K)
        if num_summed is not None:
            noise, places = epsilon["z"], _some_labels(weights, epsilon["label"][0], num_summed)
        each = jax.vmap(lambda one: estimator(generative, recognition, Datapoint(x.values, x.observed, one), noise))
        of_labels = each(jnp.eye(K, dtype=label.dtype)[places])
        weights, divergences = weights[places], jnp.where(is_known, 0, log_q[places]) - log_p[places]
        score = 0.0
        if num_summed is not None:
            weights, score = _with_rest(weights, of_labels.lower_bound - divergences, log_q[places[-1]])
        bound = jnp.sum(weights * of_labels.lower_bound)
        parts = (None if term is None else jnp.sum(weights * term) for term in of_labels[1:])
        divergence = jnp.sum(weights * divergences)  # of q(y|x), or of the label, from p(y)
        scale = jnp.where(is_known, 1 / visits, 1.0)
        more = jnp.where(is_known, classification * jnp.sum(label * log_q), score)
        reconstruction, kl = parts
        kl = None if kl is None else scale * (kl + divergence)
        reconstruction = None if reconstruction is None else scale * reconstruction
        return Terms(scale * (bound - divergence + more), reconstruction, kl)

    if num_summed is not None:
        terms.noise = noise_with_label  # pyright: ignore[reportFunctionMemberAccess]
    terms.summed = estimator  # pyright: ignore[reportFunctionMemberAccess]
    return terms


def _some_labels(weights, gumbel, num_summed):
    """Return the labels with the largest weights, and one drawn from the others by the noise (K,)."""
    weights = lax.stop_gradient(weights)
    _, largest = lax.top_k(weights, num_summed)
    others = jnp.log(weights).at[largest].set(-jnp.inf)
    return jnp.append(largest, jnp.argmax(others + gumbel))


def _with_rest(weights, values, log_q):
    """Return the weights of some labels and of one drawn from the others, and a term that is 0 but has a gradient.

    Args:
        weights: q(y|x) of these labels, the one drawn last.
        values: What is summed over the labels.
        log_q: Of the label drawn.
    """
    summed = jnp.sum(weights[:-1])
    baseline = lax.stop_gradient(jnp.sum(weights[:-1] * values[:-1]) / summed)
    rest = lax.stop_gradient(jnp.maximum(1 - summed, 0))
    score = rest * lax.stop_gradient(values[-1] - baseline) * (log_q - lax.stop_gradient(log_q))
    score = score - baseline * (summed - lax.stop_gradient(summed))  # all probabilities add up to 1
    return weights.at[-1].set(rest), score
