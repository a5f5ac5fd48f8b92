"""The schedule by which chains of Hybrid Monte Carlo adapt their step sizes and masses.

Paper: App. E.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

TARGET_ACCEPTANCE = 0.9  # of App. E


def adapt(
    log_step_size: Array, acceptance: Array, target: float = TARGET_ACCEPTANCE, gain: float | Array = 0.05
) -> Array:
    r"""Move a step size towards the target acceptance, by one step of Robbins and Monro (1951).

    .. math:: \log s \leftarrow \log s + g\, (a - a^*)

    Args:
        log_step_size: Any shape.
        acceptance: Acceptance probability of the last transition, or its average over chains.
        target: The target acceptance.
        gain: g: a constant tracks a changing density; a gain that falls as 1/t converges.

    Example:
        >>> print(f"{adapt(0.0, 0.5, target=0.9, gain=0.1):.2f}")
        -0.04

    Paper: App. E.
    """
    return log_step_size + gain * (acceptance - target)


class TuningSchedule(NamedTuple):
    """The adaptation after each transition, arrays (T,)."""

    gain: np.ndarray  # of the step sizes, see `hmc.adapt`
    is_averaged: np.ndarray  # whether the step size is part of the average that is kept
    num_averaged: np.ndarray  # at the end of a phase, the number of step sizes averaged; else 0
    window_size: np.ndarray  # number of positions in the variance, including this one; 0 outside the window
    sets_masses: np.ndarray  # whether the variance becomes the inverse mass


def tuning_schedule(num_steps: int, adapt_mass: bool, num_samples: int = 0) -> TuningSchedule:
    """Return the schedule of one phase, or of two: the first finds the masses, the second the step sizes for them.

    In each phase gains are constant for a quarter and then decrease, and averages over its second half are kept, which
    makes slowly decreasing gains optimal (Polyak and Juditsky, "Acceleration of stochastic approximation by averaging",
    1992). Dual averaging, as in the No-U-Turn sampler, ended 0.02 to 0.05 above the target.

    Args:
        num_steps: Transitions for tuning.
        adapt_mass: Whether there are two phases.
        num_samples: Transitions after those, without tuning.
    """
    half = num_steps // 2 if adapt_mass else num_steps
    phases = [_phase(n) for n in (half, num_steps - half) if n]
    schedule = jax.tree.map(lambda *parts: np.concatenate(parts), *phases)
    if adapt_mass:
        schedule.window_size[half // 2 : half] = np.arange(1, half - half // 2 + 1)
        schedule.sets_masses[half - 1] = True
    return jax.tree.map(lambda numbers: np.pad(numbers, (0, num_samples)), schedule)


def _phase(n):
    t = np.arange(n)
    gain = (2 * (1 + np.maximum(t - n // 4, 0) / 5) ** -0.6).astype(jnp.result_type(float))
    num_averaged = np.where(t == n - 1, n - n // 2, 0)
    return TuningSchedule(gain, t >= n // 2, num_averaged, np.zeros(n, int), np.zeros(n, bool))


class Tuning(NamedTuple):
    """The tuning state of each chain."""

    log_steps: Array  # (N,)
    total: Array  # (N,): of the log step sizes that are averaged
    inverse_masses: Array  # (N, J)
    mean: Array  # (N, J): of the positions in the window
    squares: Array  # (N, J): summed squares of their deviations

    @classmethod
    def start(cls, step_sizes: Array, inverse_masses: Array) -> "Tuning":
        """Return the initial state."""
        nothing = jnp.zeros_like(inverse_masses)
        return cls(jnp.log(step_sizes), jnp.zeros_like(step_sizes), inverse_masses, nothing, nothing)

    def updated(self, log_steps: Array, positions: Array, now: TuningSchedule, group: int) -> "Tuning":
        """Update with the adapted step sizes (N,) and the positions (N, J) of one transition of the schedule."""
        total = self.total + jnp.where(now.is_averaged, log_steps, 0.0)
        log_steps = jnp.where(now.num_averaged > 0, total / jnp.maximum(now.num_averaged, 1), log_steps)
        total = jnp.where(now.num_averaged > 0, 0.0, total)
        # The variance in the window, by Welford's recursion; then over the chains of a group.
        num = jnp.maximum(now.window_size, 1)
        away = jnp.where(now.window_size > 0, positions - self.mean, 0.0)
        mean = self.mean + away / num
        squares = self.squares + away * (positions - mean)
        variance = pooled(squares / num + (mean - pooled(mean, group)) ** 2, group)
        variance = (num * variance + 5 * 1e-3) / (num + 5)  # as in Stan: a few samples may be close to each other
        # In units of the new masses the scales are near 1: the old step size is relative to their geometric mean.
        change = jnp.mean(jnp.log(self.inverse_masses) - jnp.log(variance), 1) / 2
        log_steps = log_steps + jnp.where(now.sets_masses, change, 0.0)
        masses = jnp.where(now.sets_masses, variance, self.inverse_masses)
        return Tuning(log_steps, total, masses, mean, squares)


def pooled(values: Array, group: int) -> Array:
    """Replace each value by the average over its group of `group` neighbours: (N, ...)."""
    if group == 1:
        return values
    return jnp.repeat(values.reshape(-1, group, *values.shape[1:]).mean(1), group, axis=0)
