"""SGVB for any named family in coordinates whitened by a Gaussian: flows and low-rank Gaussians."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from aevb.distributions import reparameterize
from aevb.models import POSTERIOR_FAMILIES, join, split
from aevb.posterior.density import Density
from aevb.posterior.gaussian import Gaussian

ROUND = 100  # steps per compiled call
NUM_SAMPLES = 32  # draws per step; fewer if the model is expensive
RATES = 0.01 * 0.4 ** np.arange(5)  # learning rates of the levels
AVERAGE = 0.98  # of the averaged parameters: the weight of the past, in each step
PATIENCE = 4  # rounds without a better bound after which a level ends
MIN_GAIN = 0.005  # nats, by which it has to be better
LARGEST_NORM = 10.0  # of a gradient


class Whitened(NamedTuple):
    """A family's module over w, where u = mean + factor w."""

    family: str
    module: Any  # called without arguments, it returns a distribution of w
    base: Gaussian
    precise: bool

    def gaussian(self) -> Gaussian:
        """Return the Gaussian that whitens the coordinates."""
        return self.base

    def draw(self, rng: np.random.Generator, num_draws: int) -> tuple[np.ndarray, np.ndarray]:
        """Return points u (S, D) and log q there, (S,)."""
        with jax.enable_x64(self.precise):
            w, log_prob = _draw(self.module, jax.random.key(int(rng.integers(2**31))), num_draws)
            w, log_prob = np.asarray(w, np.float64), np.asarray(log_prob, np.float64)
        return self.base.transform(w), log_prob - self.base.log_det()

    def log_prob(self, points: np.ndarray) -> np.ndarray:
        """Return log q at points, (S,)."""
        with jax.enable_x64(self.precise):
            log_prob = np.asarray(_log_prob(self.module, self.base.noise(points)), np.float64)
        return log_prob - self.base.log_det()


@eqx.filter_jit
def _draw(module, key, num_draws):
    q = module()
    noise, transform = reparameterize(q)
    w = transform(jnp.asarray(noise.sample(key, (num_draws,))))
    return w, q.log_prob(w)


@eqx.filter_jit
def _log_prob(module, w):
    return module().log_prob(w)


class FamilyFit(NamedTuple):
    """A fitted family."""

    q: Whitened
    converged: bool
    history: list[dict]
    stopped_because: str


def maximize_family(
    density: Density, family: str, base: Gaussian, seed: int, max_steps: int, watch=lambda row: None
) -> FamilyFit:
    """Maximize the bound over a named family, starting from N(0, I) in the whitened coordinates.

    Steps have one size until four rounds of 100 steps have not improved the best average bound of a round by more than
    0.005 nats; then they are smaller. After five sizes learning has converged. The parameters are averaged.

    Args:
        density: The log density.
        family: A key of ``POSTERIOR_FAMILIES``.
        base: The Gaussian that defines the coordinates.
        seed: Random seed.
        max_steps: Number of steps after which to give up.
        watch: Called with each row of the history.
    """
    with density.precision():
        module = _standard(POSTERIOR_FAMILIES[family](len(base.mean)))
        parameters, constants, skeleton = split(module)
        num_samples = NUM_SAMPLES if density.is_cheap else density.block
        optimizer = _optimizer()
        state = (parameters, optimizer.init(parameters), parameters)
        key, history, done, best = jax.random.key(seed), [], 0, None
        converged, reason = False, "max_steps"
        coordinates = (jnp.asarray(base.mean), jnp.asarray(base.factor))
        run = jax.jit(partial(_round, _Setting(density, base.is_diagonal, skeleton, num_samples)))
        try:
            for level, rate in enumerate(RATES):
                highest, since = -np.inf, 0
                while done < max_steps:
                    key_now = jax.random.fold_in(key, done)
                    after, bounds = run(state, constants, density.data, coordinates, key_now, float(rate))
                    bounds = np.asarray(bounds, np.float64)
                    done += ROUND
                    if not np.isfinite(bounds).all() or not all(
                        np.isfinite(leaf).all() for leaf in map(np.asarray, jax.tree.leaves(after[0]))
                    ):
                        if best is None or level == len(RATES) - 1:
                            reason = "diverged"
                        break  # keep the last good state, and take smaller steps
                    state = after
                    mean = float(bounds.mean())
                    history.append({"step": done, "lower_bound": mean, "learning_rate": float(rate)})
                    watch(history[-1])
                    best = state[2]
                    highest, since = (mean, 0) if mean > highest + MIN_GAIN else (highest, since + 1)
                    if since >= PATIENCE:
                        break
                if done >= max_steps:
                    break
            else:
                converged, reason = reason != "diverged", "converged" if reason != "diverged" else reason
        except KeyboardInterrupt:
            if best is None:
                raise
            reason = "interrupted"
        module = join(parameters if best is None else best, constants, skeleton)
    return FamilyFit(Whitened(family, module, base, density.precise), converged, history, reason)


def _standard(module):
    """Return the module with unit scale: the coordinates are whitened already."""
    module = eqx.tree_at(lambda m: m.log_scale, module, jnp.zeros_like(module.log_scale))
    if hasattr(module, "factor"):
        module = eqx.tree_at(lambda m: m.factor, module, 0.3 * module.factor)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(float)), module)


def _optimizer():
    return optax.chain(optax.clip_by_global_norm(LARGEST_NORM), optax.scale_by_adam(b2=0.99))


class _Setting(NamedTuple):
    """What a compiled round of steps depends on."""

    density: Density
    is_diagonal: bool
    skeleton: Any
    num_samples: int


def _round(setting, state, constants, data, coordinates, key, rate):
    """Take a round of steps; return the state (parameters, optimizer, average) and the bound at each step."""
    density, is_diagonal, skeleton, num_samples = setting
    mean, factor = coordinates
    log_det = jnp.log(jnp.abs(factor)).sum() if is_diagonal else jnp.linalg.slogdet(factor)[1]
    optimizer = _optimizer()

    def log_joint(w):
        return density.of_point(mean + (factor * w if is_diagonal else factor @ w), data) + log_det

    def loss(parameters, zeta):
        w = reparameterize(join(parameters, constants, skeleton)()).transform(zeta)
        fixed = join(lax.stop_gradient(parameters), constants, skeleton)()  # sticking the landing
        values = lax.map(log_joint, w, batch_size=min(density.at_once, num_samples)) - fixed.log_prob(w)
        return -jnp.mean(values)

    def step(carry, key):
        parameters, memory, average = carry
        zeta = reparameterize(join(parameters, constants, skeleton)()).noise.sample(key, (num_samples,))
        value, gradient = jax.value_and_grad(loss)(parameters, zeta)
        updates, memory = optimizer.update(gradient, memory, parameters)
        parameters = jax.tree.map(lambda p, u: p - rate * u, parameters, updates)
        average = jax.tree.map(lambda a, p: AVERAGE * a + (1 - AVERAGE) * p, average, parameters)
        return (parameters, memory, average), -value

    return lax.scan(step, state, jax.random.split(key, ROUND))
