"""Hybrid Monte Carlo over the latent variables of many datapoints at once.

The kernel and the leapfrog integrator are BlackJAX's; this file runs them for all datapoints in one compiled call, each
with its own step size and mass matrix.

Paper: App. D, App. E.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from blackjax.mcmc import hmc as kernels
from jax import Array, lax

from aevb.inference.trajectory import move_chain
from aevb.inference.tuning import TARGET_ACCEPTANCE, Tuning, adapt, pooled, tuning_schedule
from aevb.models.compilation import compiled

JITTER = 0.2


class HMCState(NamedTuple):
    """Chains that persist between calls, one per datapoint.

    It does not contain log densities and gradients: they are recomputed at the start of each call, because the density
    may change between calls, as it does while a model is trained.
    """

    positions: Array  # (N, J)
    step_sizes: Array  # (N,)
    inverse_masses: Array  # (N, J): the diagonals of the inverse mass matrices


class HMCOptions(NamedTuple):
    """How chains move while they are tuned."""

    num_leapfrog: int = 10  # leapfrog steps per transition
    target: float = TARGET_ACCEPTANCE  # acceptance to which the step sizes are tuned
    jitter: float = JITTER  # of the step size, see `transition`


class HMCInfo(NamedTuple):
    """Statistics of each transition."""

    acceptance: Array  # (S, N): probabilities, not decisions
    is_divergent: Array  # (S, N)
    log_density: Array  # (S, N): at the samples


def init(positions: Array, step_size: float | Array = 0.1, inverse_mass: float | Array = 1.0) -> HMCState:
    """Start a chain at each position.

    Args:
        positions: (N, J).
        step_size: Size of the leapfrog steps: a number, or one per datapoint (N,).
        inverse_mass: Inverse mass of each latent variable: a number or (N, J); best near the posterior variance.

    Example:
        >>> init(jnp.zeros((3, 2))).step_sizes.shape
        (3,)
    """
    positions = jnp.asarray(positions, jnp.result_type(float))
    N, _ = positions.shape
    return HMCState(
        positions,
        jnp.broadcast_to(jnp.asarray(step_size, positions.dtype), (N,)),
        jnp.broadcast_to(jnp.asarray(inverse_mass, positions.dtype), positions.shape),
    )


def transition(
    log_density: Callable[[Array], Array],
    key: Array,
    position: Array,
    step_size: float | Array,
    num_leapfrog: int = 10,
    inverse_mass: float | Array = 1.0,
    jitter: float = JITTER,
) -> tuple[Array, Array]:
    r"""Make one transition of one chain: draw a momentum, follow the dynamics, accept or reject.

    .. math:: \min(1, e^{H(z, r) - H(z', r')}), \quad H(z, r) = -\log p(x, z) + r^T M^{-1} r / 2

    Args:
        log_density: Log density of one z, up to a constant.
        key: Random key for the momentum, the jitter and the decision.
        position: z, (J,).
        step_size: Size of the leapfrog steps.
        num_leapfrog: Number of leapfrog steps.
        inverse_mass: Diagonal of the inverse mass matrix: a number or (J,).
        jitter: The step size is multiplied by a uniform draw from 1 ± jitter, because a trajectory of fixed length may
            return to its start.

    Returns:
        The next position (J,) and the probability with which the proposal was accepted.

    Example:
        >>> z, acceptance = transition(lambda z: -(z @ z) / 2, jax.random.key(0), jnp.zeros(2), 0.1)
        >>> bool(acceptance > 0.99)
        True

    Paper: App. E.
    """
    chain = kernels.init(position, log_density)
    chain, info = move_chain(
        log_density, key, chain, step_size, jnp.broadcast_to(inverse_mass, position.shape), num_leapfrog, jitter
    )
    return chain.position, info.acceptance_rate


@compiled("num_steps", "num_leapfrog", "target_acceptance", "shared", "adapt_mass", "jitter")
def tune(
    log_density: Callable[[Array, Any], Array],
    state: HMCState,
    key: Array,
    x: Any,
    *,
    num_steps: int = 200,
    target_acceptance: float = TARGET_ACCEPTANCE,
    shared: bool = False,
    adapt_mass: bool = False,
    **moves,
) -> HMCState:
    """Tune the step sizes to the target acceptance while the chains move.

    Each step size follows :func:`adapt` with decreasing gains, and the average over the second half is kept. The target
    is for the average acceptance probability.

    Args:
        log_density: Log density ``log_density(z, x)`` of one z (J,), given the x of one datapoint: a module-level
            function, or a ``jax.tree_util.Partial`` of one that contains a model.
        state: The chains.
        key: One key, or one per datapoint (N,).
        x: A pytree with leading axis N: the data of each datapoint.
        num_steps: Total number of transitions.
        target_acceptance: The target acceptance.
        shared: Whether all datapoints share one step size.
        adapt_mass: Whether to set the inverse masses to the variances of the chains in the second quarter; the second
            half of the transitions then tunes the step sizes for them.
        moves: ``num_leapfrog`` and ``jitter``, see :func:`transition`.

    Example:
        >>> log_density = lambda z, x: -((z - x) ** 2).sum() / 2
        >>> state = tune(log_density, init(jnp.zeros((3, 2)), 0.01), jax.random.key(0), jnp.ones(3))
        >>> bool((state.step_sizes > 0.5).all())
        True

    Paper: App. E.
    """
    keys = split_keys(_datapoint_keys(key, state), num_steps)
    schedule, options = tuning_schedule(num_steps, adapt_mass), HMCOptions(target=target_acceptance, **moves)
    return run_chains(log_density, state, keys, x, schedule, options, group=len(keys[0]) if shared else 1)[0]


def tune_and_sample(
    log_density: Callable[[Array, Any], Array],
    state: HMCState,
    keys: Array,
    x: Any,
    *,
    num_tuning: int,
    num_samples: int,
    num_chains: int = 1,
    **options,
) -> Array:
    """Tune step sizes and masses, then return samples (S, N, J), in one loop: half the program of `tune` and `sample`.

    Args:
        log_density: See :func:`tune`.
        state: The chains; those of one datapoint are adjacent and are tuned together.
        keys: One per chain, (N,).
        x: A pytree with leading axis N.
        num_tuning: Transitions for tuning, which are discarded.
        num_samples: S, transitions after those.
        num_chains: Chains per datapoint.
        options: ``num_leapfrog``, ``target`` and ``jitter``, see :class:`HMCOptions`.

    Paper: App. E.
    """
    schedule = tuning_schedule(num_tuning, True, num_samples)
    keys = split_keys(keys, num_tuning + num_samples)
    return run_chains(log_density, state, keys, x, schedule, HMCOptions(**options), group=num_chains)[1][num_tuning:]


@compiled("num_samples", "num_leapfrog", "jitter")
def sample(
    log_density: Callable[[Array, Any], Array],
    state: HMCState,
    key: Array,
    x: Any,
    *,
    num_samples: int,
    num_leapfrog: int = 10,
    jitter: float = JITTER,
) -> tuple[HMCState, Array, HMCInfo]:
    """Draw from each datapoint's density, one sample per transition.

    Args:
        log_density: See :func:`tune`.
        state: The tuned chains.
        key: One key, or one per datapoint (N,).
        x: A pytree with leading axis N.
        num_samples: S, the number of transitions.
        num_leapfrog: Leapfrog steps per transition.
        jitter: See :func:`transition`.

    Returns:
        The new state of the chains, the samples (S, N, J), and statistics of the transitions.

    Example:
        >>> log_density = lambda z, x: -((z - x) ** 2).sum() / 2
        >>> state = init(jnp.zeros((3, 2)), 0.5)
        >>> state, z, info = sample(log_density, state, jax.random.key(0), jnp.ones(3), num_samples=9)
        >>> z.shape, info.acceptance.shape
        ((9, 3, 2), (9, 3))

    Paper: App. D, App. E.
    """

    def step(chains, keys):
        chains, info = move(keys, chains, state.step_sizes, state.inverse_masses, x)
        return chains, (chains.position, HMCInfo(info.acceptance_rate, info.is_divergent, chains.logdensity))

    move = _move_all(log_density, num_leapfrog, jitter)
    chains = _start_all(log_density, state.positions, x)
    chains, (positions, info) = lax.scan(step, chains, split_keys(_datapoint_keys(key, state), num_samples))
    return state._replace(positions=chains.position), positions, info


def run_chains(log_density, state, keys, x, schedule, options, *, group) -> tuple[HMCState, Array, Array]:
    """Make a transition for each row of keys (T, N), tuning by the schedule.

    Each group of `group` adjacent chains shares step sizes and masses.

    Returns:
        The state, positions (T, N, J) and acceptance probabilities (T, N).
    """
    move = _move_all(log_density, options.num_leapfrog, options.jitter)

    def step(carry, inputs):
        chains, tuning = carry
        keys, now = inputs
        chains, info = move(keys, chains, jnp.exp(tuning.log_steps), tuning.inverse_masses, x)
        acceptance: Any = info.acceptance_rate
        log_steps = adapt(tuning.log_steps, pooled(acceptance, group), options.target, now.gain)
        return (chains, tuning.updated(log_steps, chains.position, now, group)), (chains.position, acceptance)

    tuning = Tuning.start(pooled(state.step_sizes, group), state.inverse_masses)
    carry = (_start_all(log_density, state.positions, x), tuning)
    (chains, tuning), (positions, acceptance) = lax.scan(step, carry, (keys, schedule))
    end: Any = chains.position
    return HMCState(end, jnp.exp(tuning.log_steps), tuning.inverse_masses), positions, acceptance


def _move_all(log_density, num_leapfrog, jitter):
    def move(key, chain, step_size, inverse_mass, x):
        return move_chain(partial(_given, log_density, x), key, chain, step_size, inverse_mass, num_leapfrog, jitter)

    return jax.vmap(move)


def _start_all(log_density, positions, x):
    return jax.vmap(lambda z, x: kernels.init(z, partial(_given, log_density, x)))(positions, x)


def _given(log_density, x, z):
    return log_density(z, x)


def _datapoint_keys(key, state):
    return key if key.ndim else jax.random.split(key, len(state.positions))


def split_keys(keys, num):
    """Return keys (num, N)."""
    return jax.vmap(lambda key: jax.random.split(key, num), out_axes=1)(keys)
