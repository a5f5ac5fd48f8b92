"""Sequential Monte Carlo: filtered and smoothed states, and log p(x), of a state-space model.

Paper: §7.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from aevb.distributions import MarkovChain

RESAMPLE_BELOW = 0.5  # of the particles: their effective number at which they are drawn again


class Particles(NamedTuple):
    """The result of a particle filter for one sequence."""

    log_predictive: Array  # (T,), log p(x_t | x_{1:t-1}); 0 at steps that are missing or beyond the end
    mean: Array  # (T, J), E[z_t | x_{1:t}]
    variance: Array  # (T, J)
    last: Array  # (K, J), the particles at the last step
    log_weights: Array  # (K,), theirs, normalized
    every: tuple[Array, Array] | None = None  # the particles of all steps (T, K, J) and their weights (T, K), if kept

    @property
    def log_likelihood(self) -> Array:
        """The estimate of log p(x); its exponential is unbiased."""
        return jnp.sum(self.log_predictive)


def particle_filter(
    prior: MarkovChain,
    log_emission: Callable[[Array, Any], Array],
    x: Any,
    key: Array,
    num_particles: int,
    proposal: MarkovChain | None = None,
    *,
    keep: bool = False,
) -> Particles:
    r"""Filter one sequence.

    .. math:: w_t^k = \frac{p(x_t | z_t^k)\, p(z_t^k | z_{t-1}^k)}{r(z_t^k | z_{t-1}^k)}, \qquad
        \hat p(x_t | x_{1:t-1}) = \sum_k W_{t-1}^k w_t^k, \qquad E\Big[\prod_t \hat p(x_t | x_{1:t-1})\Big] = p(x)

    Particles are drawn from r, and systematically resampled where their effective number falls below half (Doucet and
    Johansen, "A tutorial on particle filtering and smoothing", 2009, section 4). Steps beyond the end leave them
    unchanged.

    Args:
        prior: p(z), over states (T, J).
        log_emission: Function of states (K, J) and of one step of `x` that returns log p(x_t|z_t), (K,).
        x: Observations: a tree of arrays with leading axis T.
        key: Random key.
        num_particles: K.
        proposal: r, a chain whose steps see no later observations; None for the prior.
        keep: Whether to keep the particles of all steps, see :func:`smoothed_draws`.
    """
    r, T, K = prior if proposal is None else proposal, prior.num_steps, num_particles
    exists = _exists(prior)

    def weighted(z, log_w, p, q, x):
        """Return the normalized weights after a step, and the log of their sum before."""
        log_w = log_w + log_emission(z, x)
        if proposal is not None:
            log_w = log_w + jax.vmap(lambda z, p, q: p.log_prob(z) - q.log_prob(z))(z, p, q)
        total = jax.nn.logsumexp(log_w)
        return log_w - total, total

    def many(distribution):  # one for each particle
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (K, *jnp.shape(leaf))), distribution)

    def moments(z, log_w):
        W = jnp.exp(log_w)[:, None]
        mean = jnp.sum(W * z, axis=0)
        return mean, jnp.sum(W * (z - mean) ** 2, axis=0)

    key, key_first = jax.random.split(key)
    z = jnp.asarray(r.initial.sample(key_first, (K,)))
    x_first = jax.tree.map(lambda leaf: leaf[0], x)
    log_w, total = weighted(z, jnp.full(K, -jnp.log(K)), many(prior.initial), many(r.initial), x_first)

    def step(carry, inputs):
        before, log_before = carry
        x, u, v, key, here = inputs
        key_where, key_z = jax.random.split(key)
        is_poor = jax.nn.logsumexp(2 * log_before) > -jnp.log(RESAMPLE_BELOW * K)
        chosen = jnp.where(is_poor, _systematic(log_before, key_where), jnp.arange(K))
        z, log_w = before[chosen], jnp.where(is_poor, -jnp.log(K), log_before)
        p = jax.vmap(lambda z: prior.transition(z, u))(z)
        q = p if proposal is None else jax.vmap(lambda z: r.transition(z, v))(z)
        z = jax.vmap(lambda q, key: q.sample(key))(q, jax.random.split(key_z, K))
        log_w, total = weighted(z, log_w, p, q, x)
        z, log_w = jnp.where(here, z, before), jnp.where(here, log_w, log_before)
        return (z, log_w), ((jnp.where(here, total, 0), *moments(z, log_w)), (z, log_w) if keep else None)

    rest = jax.tree.map(lambda leaf: leaf[1:], (x, prior.inputs, r.inputs))
    inputs = (*rest, jax.random.split(key, T - 1), exists[1:])
    first = (total, *moments(z, log_w)), (z, log_w) if keep else None
    (last, log_weights), rest = lax.scan(step, (z, log_w), inputs)
    joined = jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), first, rest)
    (log_predictive, mean, variance), every = joined
    return Particles(log_predictive, mean, variance, last, log_weights, every)


def smoothed_draws(prior: MarkovChain, found: Particles, key: Array, num_draws: int) -> Array:
    r"""Draw all states given all observations, (num_draws, T, J), from the particles of a filter.

    .. math:: z_T \sim \sum_k W_T^k \delta_{z_T^k}, \qquad
        z_t \sim \sum_k \frac{W_t^k\, p(z_{t+1} | z_t^k)}{\sum_j W_t^j\, p(z_{t+1} | z_t^j)} \delta_{z_t^k}

    Backward simulation (Godsill, Doucet and West, "Monte Carlo smoothing for nonlinear time series", 2004).

    Args:
        prior: p(z).
        found: Of :func:`particle_filter`, with ``keep=True``.
        key: Random key.
        num_draws: Number of draws.
    """
    assert found.every is not None, "the filter must keep its particles"
    (z, log_w), S, T = found.every, num_draws, prior.num_steps
    exists = _exists(prior)
    keys = jax.random.split(key, T)

    def back(after, inputs):
        z, log_w, u, key, later_exists = inputs  # of step t, and whether there is a step t + 1
        p = jax.vmap(lambda z: prior.transition(z, u))(z)
        log_p = jax.vmap(lambda after: jax.vmap(lambda p: p.log_prob(after))(p))(after)  # (S, K)
        chosen = z[jax.random.categorical(key, log_w + log_p)]
        before = jnp.where(later_exists, chosen, after)  # beyond the end the particles are those of the last step
        return before, before

    last = z[-1][jax.random.categorical(keys[-1], log_w[-1], shape=(S,))]
    inputs = z[:-1], log_w[:-1], jax.tree.map(lambda leaf: leaf[1:], prior.inputs), keys[:-1], exists[1:]
    _, path = lax.scan(back, last, inputs, reverse=True)
    return jnp.swapaxes(jnp.concatenate([path, last[None]]), 0, 1)


def _exists(prior):
    """Return which steps are not padding, (T,)."""
    T = prior.num_steps
    return jnp.ones(T, bool) if prior.length is None else jnp.arange(T) < jnp.asarray(prior.length)


def _systematic(log_weights, key):
    """Return which particles are drawn again, (K,): one uniform number shifts a comb over the weights' sums."""
    K = len(log_weights)
    points = (jnp.arange(K) + jax.random.uniform(key, dtype=log_weights.dtype)) / K
    sums = jnp.cumsum(jnp.exp(log_weights))
    return jnp.clip(jnp.searchsorted(sums / sums[-1], points, side="right"), 0, K - 1)
