"""Particle filters of one sequence, with proposals that suit the model.

Paper: §7.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from aevb.arrays import fingerprint
from aevb.distributions import reparameterize
from aevb.inference.guided import guided
from aevb.inference.particle_filter import Particles, particle_filter, smoothed_draws

MAX_GUIDED = 32  # columns, and state variables, of filters whose particles are drawn given x_t
NUM_PARTICLES = 300  # of a filter whose particles are smoothed
NUM_FILTERS = 10  # independent particle filters, whose spread gives the standard error


@cache  # one function for the same number, so that its compiled program is reused
def filter_with(num_particles: int) -> Callable:
    """Return the function that filters one sequence: means and standard deviations of states, log p(x_t|x_{1:t-1})."""

    def run(models, x, key):
        found = one_filter(models, x, jax.random.fold_in(key, fingerprint(x)), num_particles)
        return found.mean, jnp.sqrt(found.variance), found.log_predictive

    return run


@cache
def filters_with(num_particles: int) -> Callable:
    """Return the function that estimates log p(x) of one sequence by independent filters, (NUM_FILTERS,)."""

    def run(models, x, key):
        keys = jax.random.split(jax.random.fold_in(key, fingerprint(x)), NUM_FILTERS)
        one = lambda key: one_filter(models, x, key, num_particles, may_look_ahead=True).log_likelihood  # noqa: E731
        return jax.vmap(one)(keys)

    return run


def one_filter(
    models: tuple, x: Any, key: Array, num_particles: int, *, may_look_ahead: bool = False, keep: bool = False
) -> Particles:
    """Return the particle filter of one sequence.

    Args:
        models: The pair (generative, recognition).
        x: One datapoint.
        key: Random key.
        num_particles: K.
        may_look_ahead: Whether states may be proposed by a q that has seen later observations. The estimate of p(x) is
            unbiased all the same; those of filtered states and of single steps are better without.
        keep: Whether to keep the particles of all steps.
    """
    generative, _ = models

    def log_emission(z, of_step):
        values, observed, given = of_step
        p = generative.decoder.at(z, given)
        return p.observed_log_prob(values, jnp.broadcast_to(observed, (len(z), len(observed))))

    prior = generative.latent_distribution(x)
    read = {name: x.given[name] for name in ("previous",) if name in x.given}
    of_steps = x.values, x.observed, read
    proposal = _proposal(models, x, (prior, of_steps), may_look_ahead)
    return particle_filter(prior, log_emission, of_steps, key, num_particles, proposal, keep=keep)


def states_given_all(models: tuple, x: Any, key: Array, num_pairs: int) -> Array:
    """Draw all states of one sequence given all its observations, (2 num_pairs, T, J): from q, or by a particle filter.

    The logarithm of the filter's estimate of p(x) and the bound of q are both below log p(x) on average, the nearer the
    better their states: the larger one decides. Filters are tried if their particles are drawn given x_t.
    """
    generative, recognition = models
    key_q, key_filter, key_back = jax.random.split(key, 3)
    q, prior = recognition(x), generative.latent_distribution(x)
    z = draws_of(q, key_q, num_pairs)
    if not _is_gaussian(generative, prior):
        return z
    bound = jnp.mean(log_weights_at(generative, q, x, z))
    found = one_filter(models, x, key_filter, NUM_PARTICLES, keep=True)
    smoothed = smoothed_draws(prior, found, key_back, 2 * num_pairs)
    return jnp.where(found.log_likelihood > bound, smoothed, z)


def log_weights_at(generative: Any, q: Any, x: Any, z: Array) -> Array:
    """Return log p(x, z) - log q(z) at draws of all states, (S, T, J); their average is a bound on log p(x)."""
    return jax.vmap(lambda z: generative.log_joint(x, z) - jnp.asarray(q.log_prob(z)))(z)


def draws_of(q: Any, key: Array, num_pairs: int) -> Array:
    """Return draws of all states from q(z|x), (2 num_pairs, T, J), in pairs of opposite noise."""
    noise, transform = reparameterize(q)
    epsilon: Any = noise.sample(key, (num_pairs,))
    return transform(jnp.concatenate([epsilon, -epsilon]))


def _proposal(models, x, filtered, may_look_ahead):
    """Return the chain that proposes states; None for the prior."""
    (generative, recognition), (prior, of_steps) = models, filtered
    networks = set(getattr(recognition.encoder, "networks", ()))
    if networks == {"forward"}:
        return recognition(x)
    if _is_gaussian(generative, prior):

        def moments(z, of_step):
            p = generative.decoder.at(z, of_step[2]).blocks[0]
            return p.loc, p.scale**2

        return guided(prior, moments, of_steps)
    return recognition(x) if networks and may_look_ahead else None


def _is_gaussian(generative, prior):
    """Whether observations and states are real numbers with Gaussian noise, and few."""
    columns = generative.decoder.step.columns
    is_few = len(columns) <= MAX_GUIDED and prior.initial.event_shape[0] <= MAX_GUIDED
    initial = prior.initial.base_dist if isinstance(prior.initial, dist.Independent) else prior.initial
    return is_few and all(column.family == "gaussian" for column in columns) and isinstance(initial, dist.Normal)
