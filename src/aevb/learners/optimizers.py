"""Named optimizers, as optax transformations with learning rate 1; the rate itself is part of a learner's state."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


class AdagradState(NamedTuple):
    """Sums of squared gradients."""

    sum_of_squares: optax.Params


def adagrad(weight_decay: float = 0.0) -> optax.GradientTransformation:
    r"""Adagrad with sums that start at zero.

    .. math:: g \leftarrow g + \lambda p, \qquad s \leftarrow s + g^2, \qquad \Delta = -g / \sqrt{s}

    optax's own starts its sums at 0.1, which drowns gradients of an average over datapoints for thousands of steps.
    (Duchi, Hazan and Singer, "Adaptive subgradient methods", 2011.)

    Args:
        weight_decay: :math:`\lambda`.

    Example:
        >>> transformation = adagrad()
        >>> state = transformation.init(jnp.zeros(2))
        >>> updates, state = transformation.update(jnp.array([3.0, -2.0]), state, jnp.zeros(2))
        >>> [round(float(u), 4) for u in updates]
        [-1.0, 1.0]

    Paper: §5.
    """

    def init(params):
        return AdagradState(jax.tree.map(jnp.zeros_like, params))

    def update(updates, state, params=None):
        params = updates if params is None else params  # without decay they play no part
        total = jax.tree.map(lambda s, g, p: s + (g + weight_decay * p) ** 2, state.sum_of_squares, updates, params)

        def direction(s, g, p):
            # The tiny number is for gradients that have been zero so far, as those of a dead pixel's weights.
            rate = jax.lax.rsqrt(s + 1e-30)
            # Not rate * (g + decay p): the sum, having two uses, would cost a pass through memory of its own.
            return -(rate * g) - (rate * weight_decay) * p

        return jax.tree.map(direction, total, updates, params), AdagradState(total)

    return optax.GradientTransformation(init, update)


# One object each, so that a compiled program is found again when the same name is asked for.
OPTIMIZERS = {
    "adam": optax.adam(1.0),
    "adagrad": adagrad(),
    "sgd": optax.sgd(1.0),
}
DEFAULT_LEARNING_RATES = {"adam": 1e-3, "sgd": 1e-3}


def with_weight_decay(optimizer: optax.GradientTransformation, weight_decay: float) -> optax.GradientTransformation:
    """Return an optimizer that sees gradients with the weights' decay added."""
    if optimizer is OPTIMIZERS["adagrad"]:
        return adagrad(weight_decay)
    return optax.chain(optax.add_decayed_weights(weight_decay), optimizer)
