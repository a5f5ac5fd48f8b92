"""log p(x) by the paper's own estimator: a reciprocal average over posterior samples.

Paper: App. D.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from blackjax.diagnostics import effective_sample_size, potential_scale_reduction
from blackjax.smc.resampling import systematic
from jax import Array, lax
from jax.tree_util import Partial

from aevb.inference import hmc
from aevb.inference.densities import DENSITIES
from aevb.inference.importance import log_mean_exp, propose_pool
from aevb.inference.parallel import leaves_a_core, uses_lapack
from aevb.inference.pareto import pareto_k_hat
from aevb.inference.rounds import tune_until_adapted
from aevb.models import GenerativeModel, RecognitionModel
from aevb.models.compilation import compiled

NARROWING = 0.8
NUM_PROPOSALS = 1000


class HarmonicOptions(NamedTuple):
    """How :func:`harmonic` samples the posterior, and which density it fits to the samples.

    Args:
        density: ``"mixture"`` of Gaussians, ``"gaussian"`` with full covariance, for unimodal posteriors (with two
            modes, the mass it puts between them makes the estimate too high), or ``"kernel"`` density.
        num_chains: Chains per datapoint.
        num_tuning: Largest number of transitions for tuning step sizes and mass matrices, which are discarded; tuning
            ends when the acceptance is near its target.
        num_leapfrog: Leapfrog steps per transition.
        num_proposals: Samples of q(z|x) and of the prior from which a datapoint's chains start; with more of them, it
            is more likely that every mode is found.
        target_acceptance: Acceptance rate to which the step sizes are tuned.
    """

    density: str = "mixture"
    num_chains: int = 4
    num_tuning: int = 200
    num_leapfrog: int = 10
    num_proposals: int = NUM_PROPOSALS
    target_acceptance: float = hmc.TARGET_ACCEPTANCE


def harmonic(
    generative: GenerativeModel,
    recognition: RecognitionModel | None,
    x: Array,
    keys: Array,
    num_samples: int = 1000,
    **options,
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    r"""Estimate log p(x) from posterior samples alone.

    .. math:: p(x) \approx \left( \frac{1}{L} \sum_l \frac{q(z^{(l)})}{p(z^{(l)})\, p(x|z^{(l)})} \right)^{-1},
        \quad z^{(l)} \sim p(z | x)

    There are three stages: Hybrid Monte Carlo draws L samples, a density q is fitted to them, and the chains continue
    for the L samples of the average. The two sets of samples then change places, and the average is over both: the
    error is smaller, for the cost of a second fit. The chains start from the best samples of q(z|x) and of the prior
    (without an encoder, after gradient ascent), and are tuned to each datapoint before the first stage.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x), where the chains start, or None.
        x: Datapoints, (N, D).
        keys: One per datapoint, (N,).
        num_samples: L, over all chains of a datapoint, in each of stages one and three.
        options: See :class:`HarmonicOptions`.

    Returns:
        Values (N,), standard errors (N,) that account for the autocorrelation of the samples, and the diagnostics
        ``effective_sample_size`` of the terms, their ``k_hat``, ``r_hat`` over the chains and ``acceptance``.

    Paper: App. D.
    Deviates: the fitted covariances are scaled by 0.8, because the terms have infinite variance where q has heavier
    tails than the posterior. The derivation holds for any q. Both sets of samples are averaged over.
    """
    how = HarmonicOptions(**options)
    per_chain = -(-num_samples // how.num_chains)
    log_terms, acceptance = _log_terms((generative, recognition), x, keys, num_samples=per_chain, how=how)
    sizes, r_hat = _chain_diagnostics(log_terms)
    log_terms = np.asarray(log_terms, np.float64).reshape(len(keys), -1)
    log_mean = log_mean_exp(log_terms)
    terms = np.exp(log_terms - log_mean[:, None])  # in units of their average
    # Antithetic chains may be worth more than the same number of independent samples; we do not rely on that.
    sizes = np.clip(np.asarray(sizes), 1, log_terms.shape[1])
    diagnostics = {"effective_sample_size": sizes, "k_hat": pareto_k_hat(log_terms)}
    diagnostics |= {"r_hat": np.asarray(r_hat), "acceptance": np.asarray(acceptance)}
    return -log_mean, terms.std(axis=1) / np.sqrt(sizes), diagnostics


def _log_terms(models, x, keys, *, num_samples, how: HarmonicOptions):
    """Return log q(z) - log p(x, z) at the fresh samples, (N, chains, samples), and the average acceptance (N,).

    Only where chains start and densities are fitted does it use LAPACK: chains of several batches move side by side.
    """
    log_joint, C = Partial(_log_joint, models[0]), how.num_chains
    state, chain_x, stages = _starts(models, x, keys, how=how)
    tune, sample = tune_until_adapted, hmc.sample
    if uses_lapack(jax.grad(log_joint), *jax.tree.map(lambda array: array[0], (state.positions, chain_x))):
        tune, sample = leaves_a_core(tune), leaves_a_core(sample)
    target = {"target_acceptance": how.target_acceptance, "num_chains": C, "max_steps": how.num_tuning}
    state = tune(log_joint, state, stages[0], chain_x, num_leapfrog=how.num_leapfrog, **target)
    moves = {"num_samples": 2 * num_samples, "num_leapfrog": how.num_leapfrog}
    _, z, info = sample(log_joint, state, stages[1], chain_x, **moves)
    halves = slice(None, num_samples), slice(num_samples, None)
    log_terms = []
    for fresh, fitted in (halves, halves[::-1]):
        q = _fitted_density(z[fitted], keys, num_chains=C, density=how.density)
        log_terms.append(_terms_at(q, z[fresh], info.log_density[fresh], num_chains=C))
    return jnp.concatenate(log_terms, axis=-1), _per_chain(info.acceptance, C)


@leaves_a_core
@compiled("how")
def _starts(models, x, keys, *, how: HarmonicOptions):
    """Return the chains at their starts, their data (N * C, D), and their keys for tuning and for sampling."""
    N, C = len(keys), how.num_chains
    starts = (how.num_proposals, C)
    start, step_sizes = lax.map(lambda row: first_positions(models, row[0], row[1], *starts), (x, keys))  # (N, C, J)
    state = hmc.init(start.reshape(N * C, -1), jnp.repeat(step_sizes, C))

    def chain_keys(stage):
        return jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, stage), C))(keys).reshape(-1)

    return state, jax.tree.map(lambda array: jnp.repeat(array, C, axis=0), x), [*map(chain_keys, (1, 2))]


@leaves_a_core
@partial(jax.jit, static_argnames=("num_chains", "density"))
def _fitted_density(z, keys, *, num_chains, density):
    """Return the density fitted to the samples (S, N * C, J) of each datapoint."""
    return jax.vmap(DENSITIES[density])(_per_datapoint(z, num_chains), keys)


@partial(jax.jit, static_argnames="num_chains")
def _terms_at(q, z, log_joint, *, num_chains):
    """Return log q(z) - log p(x, z) at samples (S, N * C, J), as (N, C, S)."""

    def log_density(z):  # at one z of each datapoint, (N, J)
        return jax.vmap(lambda q, z: q.narrowed(NARROWING).log_prob(z))(q, z)

    log_q = lax.map(log_density, jnp.moveaxis(_per_datapoint(z, num_chains), 0, 1)).T  # (N, C * S)
    return (log_q - _per_datapoint(log_joint[..., None], num_chains)[..., 0]).reshape(len(log_q), num_chains, -1)


def _per_datapoint(z, num_chains):
    S, chains, _ = z.shape
    return jnp.moveaxis(z, 0, 1).reshape(chains // num_chains, num_chains * S, -1)  # (S, N * C, J) -> (N, C * S, J)


def _per_chain(acceptance, num_chains):
    """Return the average acceptance of each datapoint (N,), from that of each transition (S, N * C)."""
    return np.asarray(acceptance).reshape(len(acceptance), -1, num_chains).mean((0, 2))


@jax.jit
def _chain_diagnostics(log_terms):
    terms = jnp.exp(log_terms - log_terms.max((1, 2), keepdims=True))
    return jax.vmap(effective_sample_size)(terms), jax.vmap(potential_scale_reduction)(log_terms)


def first_positions(models, x: Array, key: Array, num_proposals: int, num_chains: int) -> tuple[Array, Array]:
    """Return the initial positions of the chains of one datapoint (C, J), and their initial step size.

    They are drawn by weight from a pool of proposals, so that each mode of the posterior in the pool gets chains in
    proportion to its mass; without an encoder, gradient ascent follows. The step size is half the smallest standard
    deviation of q(z|x), or 0.01 without an encoder.
    """
    generative, recognition = models
    key_pool, key_choice = jax.random.split(key)
    q = None if recognition is None else recognition(x)
    pool, log_weights = propose_pool(generative, q, x, key_pool, num_proposals)
    z = _spread_by_weight(pool, jax.nn.softmax(log_weights), key_choice, num_chains)  # (C, J)
    if q is None:
        return jax.vmap(lambda z: _climb(generative, x, z))(z), jnp.asarray(0.01, z.dtype)
    return z, 0.5 * jnp.sqrt(jnp.min(q.variance))


def _spread_by_weight(pool, weights, key, num):
    """Draw weighted points evenly along the axis of largest variance, so that each mode gets its share."""
    centred = pool - weights @ pool
    _, axes = jnp.linalg.eigh((weights[:, None] * centred).T @ centred)
    order = jnp.argsort(centred @ axes[:, -1])
    return pool[order][systematic(key, weights[order], num)]


def _climb(generative, x, z, num_steps=100) -> Array:
    optimizer = optax.adam(0.05)

    def climb(carry, _):
        z, memory = carry
        updates, memory = optimizer.update(-jax.grad(generative.log_joint, argnums=1)(x, z), memory)
        moved: Any = optax.apply_updates(z, updates)
        return (moved, memory), None

    return lax.scan(climb, (z, optimizer.init(z)), length=num_steps)[0][0]


def _log_joint(generative, z, x):
    return generative.log_joint(x, z)
