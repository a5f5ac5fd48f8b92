"""Named optimizers, as optax transformations with learning rate 1; the rate itself is part of a learner's state."""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax


class AdagradState(NamedTuple):
    """Sums of squared gradients."""

    sum_of_squares: optax.Params


class Adagrad(optax.GradientTransformation):
    """An optax transformation, with the fraction of its sums that it forgets in each step."""

    forgetting: float = 0.0


@cache  # one object for the same numbers, so that a compiled program is reused
def adagrad(weight_decay: float = 0.0, forgetting: float = 0.0) -> Adagrad:
    r"""Adagrad whose sums start at zero and may forget.

    .. math:: g \leftarrow g + \lambda p, \qquad s \leftarrow (1 - \gamma) s + g^2, \qquad \Delta = -g / \sqrt{s}

    Without forgetting, s only grows and steps shrink as 1/sqrt(t): right for data with a fixed distribution, but too
    slow for a stream that changes. With it, s covers about the last :math:`1/\gamma` steps, and steps stay as large as
    those of Adagrad after that many.

    In optax's version the sums start at 0.1, which dominates gradients of an average over datapoints for thousands of
    steps.
    (Duchi, Hazan and Singer, "Adaptive subgradient methods", 2011.)

    Args:
        weight_decay: :math:`\lambda`.
        forgetting: :math:`\gamma`, from 0 to 1.

    Example:
        >>> transformation = adagrad()
        >>> state = transformation.init(jnp.zeros(2))
        >>> updates, state = transformation.update(jnp.array([3.0, -2.0]), state, jnp.zeros(2))
        >>> [round(float(u), 4) for u in updates]
        [-1.0, 1.0]

    Paper: §2, §5.
    """

    def init(params):
        return AdagradState(jax.tree.map(jnp.zeros_like, params))

    def update(updates, state, params=None):
        params = updates if params is None else params  # they only matter with decay
        before = state.sum_of_squares
        if forgetting:
            before = jax.tree.map(lambda s: (1 - forgetting) * s, before)
        total = jax.tree.map(lambda s, g, p: s + (g + weight_decay * p) ** 2, before, updates, params)

        def direction(s, g, p):
            # The tiny number is for gradients that have always been zero, such as those of a constant pixel's weights.
            rate = jax.lax.rsqrt(s + 1e-30)
            # Not rate * (g + decay p): the sum would be used twice, and take another pass through memory.
            return -(rate * g) - (rate * weight_decay) * p

        return jax.tree.map(direction, total, updates, params), AdagradState(total)

    transformation = Adagrad(init, update)
    transformation.forgetting = forgetting
    return transformation


# One object each, so that a compiled program is reused when the same name is requested.
OPTIMIZERS = {
    "adam": optax.adam(1.0),
    "adagrad": adagrad(),
    "sgd": optax.sgd(1.0),
}
DEFAULT_LEARNING_RATES = {"adam": 1e-3, "sgd": 1e-3}


@cache
def with_weight_decay(optimizer: optax.GradientTransformation, weight_decay: float) -> optax.GradientTransformation:
    """Return an optimizer that adds weight decay to the gradients."""
    if isinstance(optimizer, Adagrad):
        return adagrad(weight_decay, optimizer.forgetting)
    return optax.chain(optax.add_decayed_weights(weight_decay), optimizer)
