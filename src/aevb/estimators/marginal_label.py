"""Models whose label y is a latent variable where it is unknown: the bound of a conditional model, summed over y.

Paper: §7.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from aevb.estimators.terms import Terms
from aevb.models import Datapoint
from aevb.models.labels import noise_with_label, without_label


class LabelWeights(NamedTuple):
    r"""How much the labels themselves count.

    Args:
        classification: :math:`\alpha`, the weight of log q(y|x) of rows with labels; 0 for the bound alone.
        visits: How many times as often as other rows those with labels are visited. Their objective is divided by it.
        num_summed: How many labels are summed over, the most probable ones; None for all.
        are_emphasized: Whether networks react to labels from the start; see :func:`aevb.models.covariates.emphasized`.
    """

    classification: float = 0.0
    visits: float = 1.0
    num_summed: int | None = None
    are_emphasized: bool = False


UNWEIGHTED = LabelWeights()


@cache
def beside_label(estimator: Callable[..., Terms], weights: LabelWeights = UNWEIGHTED) -> Callable:
    r"""Turn an estimator of a bound on log p(x) into one that also learns a classifier q(y|x) of the codes.

    .. math:: L(x) + \alpha \log q(y|x), \qquad \log q(y|x) = 0 \text{ if y is unknown}

    The classifier's gradient does not reach the encoder, see :class:`~aevb.models.labels.FeatureEncoder`: this is model
    M1 of Kingma et al. (2014), features first and then a classifier, learned from the same batches.

    Args:
        estimator: Of the bound on log p(x) and its terms.
        weights: With :math:`\alpha`.
    """

    def terms(generative: Any, recognition: Any, x: Any, epsilon: Any) -> Terms:
        scale = jnp.where(jnp.sum(x.given) > 0, 1 / weights.visits, 1.0)
        of_x = estimator(generative, recognition, without_label(x), epsilon)
        log_q = jax.nn.log_softmax(recognition.encoder.labels(x).logits)
        more = weights.classification * jnp.sum(x.given * log_q)
        reconstruction, kl = (None if term is None else scale * term for term in of_x[1:3])
        return Terms(scale * (of_x.lower_bound + more), reconstruction, kl)

    terms.summed = estimator  # pyright: ignore[reportFunctionMemberAccess]
    return terms


@cache  # the same function for the same arguments, so that its compiled program is reused
def marginal_label(estimator: Callable[..., Terms], weights: LabelWeights = UNWEIGHTED) -> Callable:
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

    At first p(x|z, y) does not know what the labels mean, and rows without them would teach q(y|x) clusters other than
    the classes. If the objective is annealed, q(y|x) therefore learns from labels only at first, and p(x|z, y) from
    what q(y|x) says: with 100 labels of MNIST 14% of errors instead of 55%. The KL term has its full weight throughout:
    otherwise z says at first what the label should say, and the label remains without meaning.

    Args:
        estimator: Of the bound on log p(x|y) and its terms, such as :func:`aevb.estimators.terms_b`. The datapoint's
            `given` is an indicator of the label, (K,), zero if it is unknown.
        weights: With :math:`\alpha` and the number of labels that are summed over; if it is not None, the noise is that
            of :func:`~aevb.models.labels.noise_with_label`.

    Returns:
        A function of a :class:`~aevb.models.LabelModel`, a recognition model with a
        :class:`~aevb.models.LabelEncoder`, one datapoint and L draws of the noise.
    """
    classification, visits, num_summed, _ = weights

    def terms(generative: Any, recognition: Any, x: Any, epsilon: Any) -> Terms:
        label = x.given
        K, is_known = label.shape[-1], jnp.sum(label) > 0
        log_q, log_p = (jax.nn.log_softmax(p.logits) for p in (recognition.encoder.labels(x), generative.labels))
        q = jnp.where(is_known, label, jnp.exp(log_q))
        noise, places = epsilon, jnp.arange(K)
        if num_summed is not None:
            noise, places = epsilon["z"], _some_labels(q, epsilon["label"][0], num_summed)
        each = jax.vmap(lambda one: estimator(generative, recognition, Datapoint(x.values, x.observed, one), noise))
        of_labels = each(jnp.eye(K, dtype=label.dtype)[places])
        q, divergences = q[places], jnp.where(is_known, 0, log_q[places]) - log_p[places]
        score = 0.0
        if num_summed is not None:
            q, score = _with_rest(q, of_labels.lower_bound - divergences, log_q[places[-1]])
        bound = jnp.sum(q * of_labels.lower_bound)
        divergence = jnp.sum(q * divergences)  # of q(y|x), or of the label, from p(y)
        scale = jnp.where(is_known, 1 / visits, 1.0)
        learned = classification * jnp.sum(label * log_q)  # 0 if the label is unknown
        value = scale * (bound - divergence + learned + jnp.where(is_known, 0, score))
        at_first = scale * (jnp.sum(lax.stop_gradient(q) * of_labels.lower_bound) + learned)
        reconstruction, kl = (None if term is None else jnp.sum(q * term) for term in of_labels[1:3])
        kl = None if kl is None else scale * (kl + divergence)
        return Terms(value, None if reconstruction is None else scale * reconstruction, kl, at_first)

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
