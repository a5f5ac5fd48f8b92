r"""Draws of sequences from a state-space model, step by step.

.. math:: z_t \sim p(z_t | z_{t-1}, u_t), \quad x_t \sim p(x_t | z_t)

where both may depend on x_{t-1}, the draw before.

Paper: §7.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax

from aevb.models.emission import Emission
from aevb.models.sequence import StatePrior
from aevb.models.transitions import Step


def simulate(prior: StatePrior, emission: Emission, u: Step, key: Array, *, mean: bool = False) -> Array:
    """Draw the values of one sequence, (T, D).

    Args:
        prior: p(z).
        emission: p(x|z).
        u: What transitions read at each of the T steps, without x_{t-1}.
        key: Random key.
        mean: Whether to return the mean of each step given its state instead of the draw.
    """
    key_state, key_value, key_rest = jax.random.split(key, 3)
    first, rest = (jax.tree.map(lambda leaf, part=part: leaf[part], u) for part in (0, slice(1, None)))
    nothing = jnp.full(len(emission.step.columns), jnp.nan, u.elapsed.dtype)
    z = jnp.asarray(prior.initial(prior.reading(first, nothing).inputs).sample(key_state))
    x, shown = _emitted(emission, z, nothing, key_value, mean)
    later = simulate_after(prior, emission, (z, x), rest, key_rest, mean=mean)
    return jnp.concatenate([shown[None], later])


def simulate_after(
    prior: StatePrior, emission: Emission, last: tuple[Array, Array], u: Step, key: Array, *, mean: bool = False
) -> Array:
    """Draw the values of the steps after a state and its values, (T, D).

    Args:
        prior: p(z).
        emission: p(x|z).
        last: The last state, (J,), and the values of its step, (D,), NaN where missing.
        u: As in :func:`simulate`, of the steps to draw.
        key: Random key.
        mean: As in :func:`simulate`.
    """

    def step(carry, inputs):
        (z, previous), (u, key) = carry, inputs
        key_state, key_value = jax.random.split(key)
        z = prior.transition(z, prior.reading(u, previous)).sample(key_state)
        x, shown = _emitted(emission, z, previous, key_value, mean)
        return (z, x), shown

    return lax.scan(step, last, (u, jax.random.split(key, len(u.elapsed))))[1]


def _emitted(emission, z, previous, key, mean):
    """Return a draw of x_t, and what is shown of it: its mean, or the draw."""
    p = emission.after(z, previous)
    x = p.sample(key).astype(previous.dtype)
    return x, p.mean if mean else x
