r"""Dropout: units of the networks that are left out in a step of learning.

.. math:: y = W (m \odot h), \qquad m_j \in \{0,\, 1 / (1 - p)\}, \qquad E[m_j] = 1

Which units are left out is decided once for each step of learning, for all its datapoints and, in a sequence, for all
steps of time (Gal and Ghahramani, "A theoretically grounded application of dropout in recurrent neural networks",
2016). It is then a product of columns of matrices with numbers: the networks do not know of it, and outside of learning
nothing has to be switched off. The latent variables are not hidden units, and are never left out.

A module says which of its matrices read hidden units, or inputs of the recognition model, by its property
`read_hidden`.
"""

from typing import Any

import equinox as eqx
import jax
from jax import Array, lax


def hidden_readers(models: Any) -> list[Array]:
    """Return the matrices whose columns read units that may be left out.

    Example:
        >>> from aevb.networks import MLP
        >>> [weight.shape for weight in hidden_readers((MLP(3, (5, 4), 2), MLP(3, (), 2)))]
        [(4, 5), (2, 4)]
    """
    modules = jax.tree.leaves(models, is_leaf=_reads_hidden)
    return [weight for module in modules if _reads_hidden(module) for weight in module.read_hidden]


def _reads_hidden(node):
    return hasattr(node, "read_hidden")


def draw_masks(models: Any, rate: float, key: Array, shape: tuple[int, ...] = ()) -> list[Array]:
    """Draw m for each matrix of :func:`hidden_readers`, arrays (*shape, columns).

    Args:
        models: The models.
        rate: p, the probability that a unit is left out.
        key: Random key.
        shape: Of the steps to draw for.
    """
    weights = hidden_readers(models)
    keys = jax.random.split(key, max(len(weights), 1))
    return [
        jax.random.bernoulli(key, 1 - rate, (*shape, weight.shape[-1])).astype(weight.dtype) / (1 - rate)
        for key, weight in zip(keys, weights, strict=False)
    ]


def thinned(models: Any, masks: list[Array]) -> Any:
    """Return the models without the units that the masks leave out.

    Example:
        >>> import jax.numpy as jnp
        >>> from aevb.networks import MLP
        >>> network = jax.tree.map(jnp.ones_like, MLP(1, (3,), 1))
        >>> thinned(network, [jnp.array([2.0, 0.0, 2.0])]).layers[1].weight.tolist()
        [[2.0, 0.0, 2.0]]
    """
    # Without the barrier XLA multiplies again in every step of time, inside of the product: half of the speed.
    weights = [
        lax.optimization_barrier(weight * mask) for weight, mask in zip(hidden_readers(models), masks, strict=True)
    ]
    return eqx.tree_at(hidden_readers, models, weights) if weights else models
