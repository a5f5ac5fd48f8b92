"""The minibatch estimator: the only place with the factor N/M.

Paper: §2.3.
"""

import numbers
from collections.abc import Callable
from typing import Any

import jax
from jax import Array

from aevb.models import GenerativeModel, RecognitionModel
from aevb.parallel import WHOLE, Share, Whole


def minibatch(estimator: Callable, num_data: float, share: Whole | Share = WHOLE) -> Callable:
    r"""Turn an estimator for one datapoint into one for the whole data set.

    .. math:: \tilde L^M(X^M) = \frac{N}{M} \sum_{i=1}^M \tilde L(x^{(i)})

    Args:
        estimator: Estimator of one datapoint's bound, such as :func:`aevb.estimators.sgvb_b`, or of its terms.
        num_data: N, the size of the data set.
        share: The rows that this device has, if several share a minibatch.

    Returns:
        A function ``(generative, recognition, batch, epsilon)`` of a batch (M, ...) and its noise (M, L, ...), which
        returns the bound of the data set in nats, or its terms.

    Paper: eq. (8), §2.3.
    """
    if not isinstance(num_data, numbers.Real) or not num_data > 0:
        raise ValueError(f"num_data={num_data!r}: give N, the number of datapoints, at least 1.")

    def estimate(generative: GenerativeModel, recognition: RecognitionModel, batch: Any, epsilon: Any):
        bounds = jax.vmap(lambda x, epsilon: estimator(generative, recognition, x, epsilon))(batch, epsilon)
        return jax.tree.map(lambda bounds: scaled_sum(bounds, num_data, share), bounds)

    return estimate


def scaled_sum(values: Array, num_data: float, share: Whole | Share = WHOLE) -> Array:
    """Return N/M times the sum of values (M,), an unbiased estimate of their sum over all N datapoints."""
    return num_data / share.size(values) * share.sum(values)
