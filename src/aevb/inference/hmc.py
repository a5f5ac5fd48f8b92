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
from blackjax.mcmc.integrators import velocity_verlet
from jax import Array, lax

from aevb.models.compilation import compiled

TARGET_ACCEPTANCE = 0.9  # of App. E
JITTER = 0.2


class HMCState(NamedTuple):
    """Chains that persist between calls, one a datapoint.

    Log densities and gradients are no part of it: they are computed afresh when a call begins, so that the density
    may change between calls, as it does when a model learns.
    """

    positions: Array  # (N, J)
    step_sizes: Array  # (N,)
    inverse_masses: Array  # (N, J): the diagonals of the inverse mass matrices


class HMCInfo(NamedTuple):
    """What happened in each transition."""

    acceptance: Array  # (S, N): probabilities, not decisions
    is_divergent: Array  # (S, N)


def init(positions: Array, step_size: float | Array = 0.1, inverse_mass: float | Array = 1.0) -> HMCState:
    """Start a chain at each position.

    Args:
        positions: (N, J).
        step_size: Of the leapfrog steps: a number, or one a datapoint (N,).
        inverse_mass: Of each latent variable: a number or (N, J); best near the posterior variance.

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
    r"""Make one transition of one chain: draw a momentum, follow the dynamics, accept or stay.

    .. math:: \min(1, e^{H(z, r) - H(z', r')}), \quad H(z, r) = -\log p(x, z) + r^T M^{-1} r / 2

    Args:
        log_density: Log density of one z, up to a constant.
        key: Source of the momentum, the jitter and the decision.
        position: z, (J,).
        step_size: Of the leapfrog steps.
        num_leapfrog: Leapfrog steps.
        inverse_mass: Diagonal of the inverse mass matrix: a number or (J,).
        jitter: The step size is multiplied by a uniform draw from 1 ± this, since a trajectory of a fixed length may
            come back to where it began.

    Returns:
        The next position (J,) and the probability with which the proposal was accepted.

    Example:
        >>> z, acceptance = transition(lambda z: -(z @ z) / 2, jax.random.key(0), jnp.zeros(2), 0.1)
        >>> bool(acceptance > 0.99)
        True

    Paper: App. E.
    """
    chain = kernels.init(position, log_density)
    chain, info = _move(
        log_density, key, chain, step_size, jnp.broadcast_to(inverse_mass, position.shape), num_leapfrog, jitter
    )
    return chain.position, info.acceptance_rate


def adapt(
    log_step_size: Array, acceptance: Array, target: float = TARGET_ACCEPTANCE, gain: float | Array = 0.05
) -> Array:
    r"""Move a step size towards the target acceptance, by one step of Robbins and Monro (1951).

    .. math:: \log s \leftarrow \log s + g\, (a - a^*)

    Args:
        log_step_size: Any shape.
        acceptance: Acceptance probability of the last transition, or its average over chains.
        target: The acceptance wanted.
        gain: g: a constant follows a density that changes; one that falls as 1/t settles.

    Example:
        >>> print(f"{adapt(0.0, 0.5, target=0.9, gain=0.1):.2f}")
        -0.04

    Paper: App. E.
    """
    return log_step_size + gain * (acceptance - target)


@compiled("num_steps", "num_leapfrog", "target_acceptance", "shared", "adapt_mass", "jitter")
def tune(
    log_density: Callable[[Array, Any], Array],
    state: HMCState,
    key: Array,
    x: Any,
    *,
    num_steps: int = 200,
    num_leapfrog: int = 10,
    target_acceptance: float = TARGET_ACCEPTANCE,
    shared: bool = False,
    adapt_mass: bool = False,
    jitter: float = JITTER,
) -> HMCState:
    """Tune the step sizes to the target acceptance, while the chains move on.

    Each step size follows :func:`adapt`, with gains that fall, and the average over the second half is kept. What is
    tuned is the average acceptance probability.

    Args:
        log_density: Log density ``log_density(z, x)`` of one z (J,), given one datapoint's x: a function of a module,
            or a ``jax.tree_util.Partial`` of one that holds a model.
        state: The chains.
        key: One key, or one a datapoint (N,).
        x: A pytree with leading axis N: what belongs to each datapoint.
        num_steps: Transitions in all.
        num_leapfrog: Leapfrog steps a transition.
        target_acceptance: The acceptance wanted.
        shared: Whether one step size serves all datapoints.
        adapt_mass: Whether to set the inverse masses to the variances that the chains see in the second quarter; the
            second half of the transitions then tunes the step sizes for them.
        jitter: See :func:`transition`.

    Example:
        >>> log_density = lambda z, x: -((z - x) ** 2).sum() / 2
        >>> state = tune(log_density, init(jnp.zeros((3, 2)), 0.01), jax.random.key(0), jnp.ones(3))
        >>> bool((state.step_sizes > 0.5).all())
        True

    Paper: App. E.
    """
    settings = {"num_leapfrog": num_leapfrog, "target": target_acceptance, "shared": shared, "jitter": jitter}
    keys = _split(_datapoint_keys(key, state), num_steps)
    if not adapt_mass:
        return _tune_steps(log_density, state, keys, x, **settings)[0]
    half = num_steps // 2
    state, positions = _tune_steps(log_density, state, keys[:half], x, **settings)
    variance = _regularized_variance(positions[half // 2 :])  # (N, J)
    # In units of the new masses the scales are near 1: the old step size is measured in their geometric mean.
    step_sizes = state.step_sizes * jnp.exp(jnp.mean(jnp.log(state.inverse_masses) - jnp.log(variance), 1) / 2)
    state = HMCState(state.positions, step_sizes, variance)
    return _tune_steps(log_density, state, keys[half:], x, **settings)[0]


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
    """Draw from each datapoint's density, one sample a transition.

    Args:
        log_density: See :func:`tune`.
        state: The chains, tuned.
        key: One key, or one a datapoint (N,).
        x: A pytree with leading axis N.
        num_samples: S, the number of transitions.
        num_leapfrog: Leapfrog steps a transition.
        jitter: See :func:`transition`.

    Returns:
        The chains' new state, the samples (S, N, J), and what happened.

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
        return chains, (chains.position, HMCInfo(info.acceptance_rate, info.is_divergent))

    move = _move_all(log_density, num_leapfrog, jitter)
    chains = _start_all(log_density, state.positions, x)
    chains, (positions, info) = lax.scan(step, chains, _split(_datapoint_keys(key, state), num_samples))
    return state._replace(positions=chains.position), positions, info


def _tune_steps(log_density, state, keys, x, *, num_leapfrog, target, shared, jitter):
    """Follow the acceptance with gains that stay constant, then fall; return all positions as well.

    The step sizes kept are averages over the second half, which makes slowly falling gains as good as the best (Polyak
    and Juditsky, "Acceleration of stochastic approximation by averaging", 1992). Dual averaging, as the No-U-Turn
    sampler has it, ended 0.02 to 0.05 above the target.
    """
    move = _move_all(log_density, num_leapfrog, jitter)
    n = len(keys)

    def step(carry, inputs):
        chains, log_steps, total = carry
        keys, t = inputs
        chains, info = move(keys, chains, jnp.exp(log_steps), state.inverse_masses, x)
        acceptance: Any = info.acceptance_rate
        if shared:
            acceptance = jnp.broadcast_to(acceptance.mean(), acceptance.shape)
        gain = 2 * (1 + jnp.maximum(t - n // 4, 0) / 5) ** -0.6
        log_steps = adapt(log_steps, acceptance, target, gain)
        return (chains, log_steps, total + jnp.where(t >= n // 2, log_steps, 0.0)), chains.position

    steps = jnp.broadcast_to(state.step_sizes.mean(), state.step_sizes.shape) if shared else state.step_sizes
    carry = (_start_all(log_density, state.positions, x), jnp.log(steps), jnp.zeros_like(steps))
    (chains, _, total), positions = lax.scan(step, carry, (keys, jnp.arange(n)))
    return state._replace(positions=chains.position, step_sizes=jnp.exp(total / (n - n // 2))), positions


def _regularized_variance(positions):
    """Return the variance over time (N, J), shrunk a little towards 1e-3 as Stan does: few samples may lie close."""
    n = len(positions)
    return (n * jnp.var(positions, axis=0) + 5 * 1e-3) / (n + 5)


def _move(log_density, key, chain, step_size, inverse_mass, num_leapfrog, jitter):
    key, key_jitter = jax.random.split(key)
    step_size = step_size * jax.random.uniform(key_jitter, minval=1 - jitter, maxval=1 + jitter)
    kernel: Any = kernels.build_kernel(partial(_trajectory, num_leapfrog))  # BlackJAX annotates arrays as floats
    return kernel(key, chain, log_density, step_size, inverse_mass, 1)


def _trajectory(num_leapfrog, log_density, kinetic_energy):
    """Return an integrator whose single step is a whole trajectory.

    Between its ends only gradients are asked for: the densities, which nobody reads there, would take half of the time
    again with a Bernoulli decoder.
    """
    leapfrog: Any = velocity_verlet(log_density, kinetic_energy)

    def integrate(state, step_size):
        def between(_, moving):
            return leapfrog(moving, step_size)._replace(logdensity=moving.logdensity)

        return leapfrog(lax.fori_loop(0, num_leapfrog - 1, between, state), step_size)

    return integrate


def _move_all(log_density, num_leapfrog, jitter):
    def move(key, chain, step_size, inverse_mass, x):
        return _move(partial(_given, log_density, x), key, chain, step_size, inverse_mass, num_leapfrog, jitter)

    return jax.vmap(move)


def _start_all(log_density, positions, x):
    return jax.vmap(lambda z, x: kernels.init(z, partial(_given, log_density, x)))(positions, x)


def _given(log_density, x, z):
    return log_density(z, x)


def _datapoint_keys(key, state):
    return key if key.ndim else jax.random.split(key, len(state.positions))


def _split(keys, num):
    """Return keys (num, N)."""
    return jax.vmap(lambda key: jax.random.split(key, num), out_axes=1)(keys)
