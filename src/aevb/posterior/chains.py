"""Draws that can be trusted where q is not enough: chains of the No-U-Turn sampler in coordinates whitened by q.

Hoffman and Gelman, "The No-U-Turn sampler" (2014); the transitions are BlackJAX's.
"""

from collections.abc import Generator
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.mcmc import nuts
from jax import Array, lax

from aevb.distributions import reparameterize
from aevb.inference.chains import effective_sample_size, r_hat
from aevb.posterior.density import Density

NUM_CHAINS = 8
ROUND = 50  # transitions per compiled call
TUNING_ROUNDS = (2, 2, 4, 4)  # after each group but the last, the coordinates are whitened by the draws
ROUNDS = (10, 80)  # of draws: at least, and at most
ENOUGH = 2000  # effective draws of each variable
AGREED = 1.01
MAX_DOUBLINGS = 9
TARGET, CAREFUL = 0.85, 0.97  # acceptance: usually, and if trajectories diverge
FEW_DIVERGENT = 0.002  # share of the trajectories


class Chains(NamedTuple):
    """Draws of chains, and whether they have converged."""

    points: np.ndarray  # (chains, draws, D)
    r_hat: np.ndarray  # (D,)
    effective: np.ndarray  # (D,)
    num_divergent: int
    step_size: float

    def doubts(self) -> list[str]:
        """Return reasons not to trust the draws."""
        found = []
        if self.r_hat.max() > 1.02:
            found.append(f"r-hat is {self.r_hat.max():.3f}: the chains disagree, possibly about several modes")
        if self.effective.min() < 400:
            found.append(f"the chains' draws are worth only {self.effective.min():.0f} independent ones")
        num = self.points.shape[0] * self.points.shape[1]
        if self.num_divergent > 0.005 * num:
            found.append(f"{self.num_divergent} of {num:,} trajectories diverged: parts of the posterior are missed")
        return found


class Round(NamedTuple):
    """A round of transitions that chains ask for; see `make_round`."""

    positions: np.ndarray  # (chains, D)
    coordinates: Any  # mean, factor, a flow's module or None, and the flow's own mean and factor
    key: Array
    step_size: float


def run_chains(density: Density, q, starts: np.ndarray, seed: int, watch=lambda share: None) -> Chains:
    """Run chains from draws of q until they agree and are worth enough draws, or for a fixed number of rounds.

    Args:
        density: The log density.
        q: The posterior that defines the coordinates.
        starts: Points to start from, at least as many as there are chains; for a flow, draws of it are used instead.
        seed: Random seed.
        watch: Called with the share of the work done.
    """
    if density.chain_program is None:
        density.chain_program = jax.jit(partial(make_round, density))
    rounds, found, done, total = rounds_of(density, q, starts, seed), None, 0, sum(TUNING_ROUNDS) + ROUNDS[0]
    while True:
        try:
            now = rounds.send(found)
        except StopIteration as end:
            return end.value
        with density.precision():
            found = density.chain_program(now.positions, density.data, now.coordinates, now.key, now.step_size)
        done += 1
        watch(min(done / total, 0.99))


def rounds_of(
    density: Density, q, starts: np.ndarray, seed: int, enough: int = ENOUGH
) -> Generator[Round, Any, Chains]:
    """Yield the rounds of chains, which are sent their results, and return the chains.

    The chains move in the coordinates of q's noise: an affine map of the variables for a Gaussian or a Student t, and a
    learned one for a flow (Hoffman et al., "NeuTra-lizing bad geometry in Hamiltonian Monte Carlo using neural
    transport", 2019). If trajectories diverge while the step size is tuned, a higher acceptance is aimed at.

    Args:
        density: The log density.
        q: The posterior that defines the coordinates.
        starts: Points to start from.
        seed: Random seed.
        enough: Effective draws of each variable after which to stop.
    """
    key, base, module = jax.random.key(seed), q.gaussian(), getattr(q, "module", None)
    D = len(base.mean)
    outer = base.mean, np.diag(base.factor) if base.is_diagonal else base.factor
    if module is None:
        mean, factor = outer
        whitened = np.linalg.solve(factor, (starts[:NUM_CHAINS] - mean).T).T
    else:
        mean, factor = np.zeros(D), np.eye(D)
        whitened = np.random.default_rng(seed).standard_normal((NUM_CHAINS, D))
    tuning, done = _Tuning(), 0

    def one_round(w, factor, step):
        nonlocal done
        found = yield Round(w, (mean, factor, module, outer), jax.random.fold_in(key, done), step)
        done += 1
        return tuple(np.asarray(part, np.float64) for part in found)

    for group, num_rounds in enumerate(TUNING_ROUNDS):
        seen, divergent = [], 0.0
        for _ in range(num_rounds):
            w, acceptance, bad = yield from one_round(whitened, factor, tuning.step)
            whitened, divergent = w[:, -1], bad.mean()
            tuning.update(acceptance)
            seen.append(w)
        if group < len(TUNING_ROUNDS) - 1:
            change = _shrunk_factor(np.concatenate(seen[len(seen) // 2 :], axis=1).reshape(-1, D))
            factor, whitened = factor @ change, np.linalg.solve(change, whitened.T).T
            tuning.restart(CAREFUL if divergent > FEW_DIVERGENT else TARGET)
    step, draws, divergent = tuning.average, [], 0
    for number in range(ROUNDS[1]):
        w, _, bad = yield from one_round(whitened, factor, step)
        whitened, divergent = w[:, -1], divergent + int(bad.sum())
        draws.append(w)
        if number + 1 >= ROUNDS[0] and (number + 1) % 5 == 0:
            chains = np.concatenate(draws, axis=1)
            if effective_sample_size(chains).min() > enough and r_hat(chains).max() < AGREED:
                break
    points = mean + np.concatenate(draws, axis=1) @ factor.T
    if module is not None:
        with density.precision():
            points = base.transform(np.asarray(_moved(module, points.reshape(-1, D)), np.float64)).reshape(points.shape)
    return Chains(points, r_hat(points), effective_sample_size(points), divergent, step)


class _Tuning:
    """The step size, moved towards the target acceptance after each round; see `aevb.inference.tuning.adapt`."""

    def __init__(self):
        self.log_step, self.number, self.sizes, self.target = np.log(0.5), 0, [], TARGET

    @property
    def step(self):
        return float(np.exp(self.log_step))

    @property
    def average(self):
        return float(np.exp(np.mean(self.sizes[len(self.sizes) // 2 :])))

    def update(self, acceptance):
        gain = 2.0 / (1 + self.number) ** 0.6
        self.log_step += gain * (np.mean(acceptance) - self.target)
        self.number += 1
        self.sizes.append(self.log_step)

    def restart(self, target):
        self.number, self.sizes, self.target = 0, [], target


def _shrunk_factor(draws):
    """Return the Cholesky factor of the draws' covariance, shrunk towards its diagonal as in Stan."""
    n, D = draws.shape
    covariance = np.atleast_2d(np.cov(draws.T))
    return np.linalg.cholesky((n * covariance + 5 * 1e-3 * np.eye(D)) / (n + 5))


def make_round(density: Density, positions, data, coordinates, key, step_size):
    """Make a round of transitions of all chains; return positions (chains, T, D), acceptances and divergences."""
    mean, factor, module, (outer_mean, outer_factor) = coordinates

    def log_density(w):
        z = mean + factor @ w
        if module is None:
            value = density.of_point(z, data)
        else:
            q = module()
            moved = reparameterize(q).transform(z)
            value = (
                density.of_point(outer_mean + outer_factor @ moved, data) - z @ z / 2 - q.log_prob(moved)
            )  # plus the flow's log-determinant
        return jnp.where(jnp.isfinite(value), value, -jnp.inf)

    kernel, inverse_mass = nuts.build_kernel(), jnp.ones(len(mean))

    def chain(position, key):
        def step(state, key):
            state, info = kernel(key, state, log_density, step_size, inverse_mass, MAX_DOUBLINGS)
            return state, (state.position, info.acceptance_rate, info.is_divergent)

        return lax.scan(step, nuts.init(position, log_density), jax.random.split(key, ROUND))[1]

    return jax.vmap(chain)(positions, jax.random.split(key, len(positions)))


@eqx.filter_jit
def _moved(module, z):
    return reparameterize(module()).transform(z)
