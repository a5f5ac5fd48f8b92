"""Samples of z given an observation y, for many rows at once: four ways."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.tree_util import Partial
from numpyro.distributions import Distribution

from aevb.models import GenerativeModel, RecognitionModel
from aevb.tasks.observations import Observation

NUM_GUESSES, NUM_PRIOR_DRAWS = 10, 32
POOL_SIZE, POOL_SHARE = 2000, 0.5  # of importance sampling; the share comes from the prior


class ObservedDecoder(eqx.Module):
    """p(y|z): the decoder, seen through an observation. It makes any inference for p(x|z) one for p(y|z)."""

    decoder: Callable[[Array], Distribution]
    observation: Observation

    def __call__(self, z: Array) -> "Observed":
        """Return p(y|z)."""
        return Observed(self.decoder(z), self.observation)


class Observed(NamedTuple):
    """p(y|z), as far as inference needs it."""

    p: Distribution
    observation: Observation

    def log_prob(self, y: Array) -> Array:
        """Return log p(y|z)."""
        return self.observation.log_likelihood(self.p, y)


class GuessingEncoder(eqx.Module):
    r"""An approximate q(z|y): the encoder at a guess of x.

    .. math:: \hat x \leftarrow E[x | y, z = E_{q(z|\hat x)}[z]]

    repeated ten times, from the average of E[x|y, z] over the prior. It only has to be a good place to start.
    """

    generative: GenerativeModel
    recognition: RecognitionModel
    observation: Observation

    def __call__(self, y: Array) -> Distribution:
        """Return q(z|x) at the guess."""
        key = jax.random.key(0)  # the means have no use for it
        x = first_guess(self.generative, self.observation, y, key)

        def improve(_, x):
            return self.observation.condition(self.generative.decoder(self.recognition(x).mean), y, key).mean

        return self.recognition(lax.fori_loop(0, NUM_GUESSES, improve, x))


def first_guess(generative: GenerativeModel, observation: Observation, y: Array, key: Array) -> Array:
    """Return the average of E[x|y, z] over draws of z from the prior."""
    z = generative.latent_distribution().sample(key, (NUM_PRIOR_DRAWS,))
    return jax.vmap(lambda z: observation.condition(generative.decoder(z), y, key).mean)(z).mean(0)


def observed_models(models, observation: Observation) -> tuple[GenerativeModel, Any]:
    """Return p(z) p(y|z) and, if there is an encoder, an approximate q(z|y)."""
    generative, recognition = models
    encoder = None if recognition is None else GuessingEncoder(generative, recognition, observation)
    observed: Any = ObservedDecoder(generative.decoder, observation)
    return GenerativeModel(generative.prior, observed), encoder


def by_hmc(models, observation, y, keys, *, num_samples, num_chains, num_tuning, num_leapfrog):
    """Sample p(z|y) by Hybrid Monte Carlo; chains start from the best of proposals of the encoder and the prior."""
    from aevb.inference import hmc  # BlackJAX takes a while to load
    from aevb.inference.harmonic import NUM_PROPOSALS, first_positions

    observed = observed_models(models, observation)
    log_density = Partial(_log_joint, observed[0])
    pool = (NUM_PROPOSALS, num_chains)
    starts, step_sizes = lax.map(lambda row: first_positions(observed, row[0], row[1], *pool), (y, keys))  # (N, C, J)
    N, C, J = starts.shape
    y = jnp.repeat(y, C, axis=0)
    key_tune, key_sample = (_chain_keys(keys, stage, C).reshape(-1) for stage in (1, 2))
    state = hmc.init(starts.reshape(N * C, J), jnp.repeat(step_sizes, C))
    setting = {"num_leapfrog": num_leapfrog}
    state = hmc.tune(
        log_density, state, key_tune, y, num_steps=num_tuning, adapt_mass=True, target_acceptance=0.8, **setting
    )
    _, z, _ = hmc.sample(log_density, state, key_sample, y, num_samples=num_samples, **setting)
    return z.reshape(num_samples, N, C, J)


def by_importance(models, observation, y, keys, *, num_samples, num_chains, num_tuning, num_leapfrog):
    """Draw by weight from a pool of proposals of the encoder and the prior."""
    del num_tuning, num_leapfrog
    from blackjax.smc.resampling import systematic

    from aevb.inference.importance import propose

    observed = observed_models(models, observation)

    def of_row(row):
        y, key = row
        key_pool, key_choice, key_order = jax.random.split(key, 3)
        pool_keys = jax.random.split(key_pool, POOL_SIZE)
        pool, log_weights = jax.vmap(lambda key: propose(observed, y, key, POOL_SHARE))(pool_keys)
        chosen = systematic(key_choice, jax.nn.softmax(log_weights), num_samples * num_chains)
        return pool[jax.random.permutation(key_order, chosen)]

    z = lax.map(of_row, (y, keys))  # (N, S * C, J)
    return jnp.moveaxis(z.reshape(len(y), num_samples, num_chains, -1), 1, 0)


def by_gibbs(models, observation, y, keys, *, num_samples, num_chains, num_tuning, num_leapfrog, corrected=False):
    r"""Draw z and x in turn, with the encoder in place of the posterior.

    .. math:: z \sim q(z | x), \quad x \sim p(x | y, z)

    Rezende, Mohamed and Wierstra, "Stochastic backpropagation and approximate inference in deep generative models"
    (2014), appendix F. It samples p(z|y) as far as q(z|x) is p(z|x).
    """
    del num_leapfrog
    generative, recognition = models
    # Started by itself: far from the posterior the correction would refuse all proposals (Mattei and Frellsen, 2018).
    num_free = num_tuning // 2 if corrected else num_tuning + num_samples

    def of_chain(y, key):
        key_start, key_steps = jax.random.split(key)

        def step(state, inputs):
            x, z = state
            t, key = inputs
            key_z, key_x, key_accept = jax.random.split(key, 3)
            q = recognition(x)
            proposal = q.sample(key_z)
            if corrected:
                log_ratio = _log_ratio(generative, q, x, proposal) - _log_ratio(generative, q, x, z)
                is_accepted = jnp.log(jax.random.uniform(key_accept)) < log_ratio
                proposal = jnp.where(is_accepted | (t < num_free), proposal, z)
            x = observation.condition(generative.decoder(proposal), y, key_x).draw
            return (x.astype(state[0].dtype), proposal), proposal

        x = first_guess(generative, observation, y, key_start)
        steps = jnp.arange(num_tuning + num_samples), jax.random.split(key_steps, num_tuning + num_samples)
        return lax.scan(step, (x, recognition(x).sample(key_start)), steps)[1][num_tuning:]  # (S, J)

    z = jax.vmap(lambda y, keys: jax.vmap(lambda key: of_chain(y, key))(keys))(y, _chain_keys(keys, 0, num_chains))
    return jnp.moveaxis(z, 2, 0)  # (N, C, S, J) -> (S, N, C, J)


def by_metropolis_within_gibbs(models, observation, y, keys, **options):
    r"""Draw z and x in turn; the encoder proposes z, and the proposal is accepted or not.

    .. math:: \min\left(1, \frac{p(x, z')\, q(z | x)}{p(x, z)\, q(z' | x)}\right)

    Mattei and Frellsen, "Leveraging the exact likelihood of deep latent variable models" (2018). It samples p(z|y)
    whatever the encoder, given time.
    """
    return by_gibbs(models, observation, y, keys, corrected=True, **options)


# Name -> function of (models, observation, y (N, d), keys (N,)) that returns samples (S, N, C, J).
SAMPLERS: dict[str, Callable] = {
    "hmc": by_hmc,
    "importance": by_importance,
    "gibbs": by_gibbs,
    "metropolis-within-gibbs": by_metropolis_within_gibbs,
}
NEED_AN_ENCODER = ("gibbs", "metropolis-within-gibbs")


def _log_ratio(generative, q, x, z):
    return generative.log_joint(x, z) - q.log_prob(z)


def _log_joint(generative, z, y):
    return generative.log_joint(y, z)


def _chain_keys(keys, stage, num_chains):
    return jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, stage), num_chains))(keys)  # (N, C)
