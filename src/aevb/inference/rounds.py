"""Tuning of Hybrid Monte Carlo in rounds, which ends when the chains are adapted.

Paper: App. E.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from aevb.inference.hmc import HMCOptions, HMCState, run_chains, split_keys
from aevb.inference.tuning import TARGET_ACCEPTANCE, pooled, tuning_schedule
from aevb.models.compilation import compiled

ROUND = 20  # transitions, after which chains may be adapted
TOLERANCE = 0.1  # of the acceptance of adapted chains; above the target at most half of the way to 1


@compiled("max_steps", "num_chains", "target_acceptance", "num_leapfrog", "jitter")
def tune_until_adapted(
    log_density: Callable[[Array, Any], Array],
    state: HMCState,
    keys: Array,
    x: Any,
    *,
    max_steps: int,
    num_chains: int,
    target_acceptance: float = TARGET_ACCEPTANCE,
    **moves,
) -> HMCState:
    """Tune step sizes and masses in rounds of ``ROUND`` transitions, until the acceptance is near the target.

    The chains of a datapoint are tuned together. Once it is adapted they stay where they are, so that the result does
    not depend on the datapoints beside it. The target need not be met exactly: any step size leaves the density
    invariant, and samples that are close to independent follow from a wide range of them.

    Args:
        log_density: See :func:`tune`.
        state: The chains; those of one datapoint are adjacent.
        keys: One per chain, (N,).
        x: A pytree with leading axis N.
        max_steps: Largest number of transitions; whole rounds.
        num_chains: Chains per datapoint.
        target_acceptance: The target acceptance.
        moves: ``num_leapfrog`` and ``jitter``, see :func:`transition`.

    Example:
        >>> from aevb.inference.hmc import init
        >>> log_density = lambda z, x: -((z - x) ** 2).sum() / 2
        >>> state, keys = init(jnp.zeros((4, 2)), 0.01), jax.random.split(jax.random.key(0), 4)
        >>> state = tune_until_adapted(log_density, state, keys, jnp.ones(4), max_steps=200, num_chains=2)
        >>> bool((state.step_sizes > 0.5).all())
        True

    Paper: App. E.
    """
    options, num_steps = HMCOptions(target=target_acceptance, **moves), min(ROUND, max_steps)
    schedule = tuning_schedule(num_steps, True)
    lowest, highest = target_acceptance - TOLERANCE, min(target_acceptance + TOLERANCE, (1 + target_acceptance) / 2)

    def tune_round(carry):
        number, state, is_adapted = carry
        round_keys = split_keys(jax.vmap(jax.random.fold_in, (0, None))(keys, number), num_steps)
        after, _, acceptance = run_chains(log_density, state, round_keys, x, schedule, options, group=num_chains)
        after = jax.tree.map(partial(_chosen, is_adapted), state, after)
        now = pooled(acceptance[num_steps // 2 :].mean(0), num_chains)
        return number + 1, after, is_adapted | ((now > lowest) & (now < highest))

    def goes_on(carry):
        number, _, is_adapted = carry
        return (number < max_steps // num_steps) & ~is_adapted.all()

    none_adapted = jnp.zeros(len(keys), bool)
    return lax.while_loop(goes_on, tune_round, (0, state, none_adapted))[1]


def _chosen(condition, one, other):
    return jnp.where(jnp.expand_dims(condition, range(1, one.ndim)), one, other)
