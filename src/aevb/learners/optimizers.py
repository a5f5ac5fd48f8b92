"""Named optimizers, as optax transformations with learning rate 1; the rate itself is part of a learner's state."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


class AdagradState(NamedTuple):
    """Sums of squared gradients."""

    sum_of_squares: optax.Params


def adagrad() -> optax.GradientTransformation:
    r"""Adagrad with sums that start at zero.

    .. math:: s \leftarrow s + g^2, \qquad \Delta = -g / \sqrt{s}

    optax's own starts its sums at 0.1, which drowns gradients of an average over datapoints for thousands of steps.
    (Duchi, Hazan and Singer, "Adaptive subgradient methods", 2011.)

    Example:
        >>> transformation = adagrad()
        >>> state = transformation.init(jnp.zeros(2))
        >>> updates, state = transformation.update(jnp.array([3.0, 0.0]), state)
        >>> [round(float(u), 4) for u in updates]
        [-1.0, 0.0]

    Paper: §5.
    """

    def init(params):
        return AdagradState(jax.tree.map(jnp.zeros_like, params))

    def update(updates, state, params=None):
        del params
        total = jax.tree.map(lambda s, g: s + g**2, state.sum_of_squares, updates)
        # The tiny number is for gradients that have been zero so far, as those of a dead pixel's weights.
        updates = jax.tree.map(lambda s, g: -g * jax.lax.rsqrt(s + 1e-30), total, updates)
        return updates, AdagradState(total)

    return optax.GradientTransformation(init, update)


# One object each, so that a compiled program is found again when the same name is asked for.
OPTIMIZERS = {
    "adam": optax.adam(1.0),
    "adagrad": adagrad(),
    "sgd": optax.sgd(1.0),
}
DEFAULT_LEARNING_RATES = {"adam": 1e-3, "sgd": 1e-3}
