"""Four ways to sample z given an observation y, for many rows at once."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.tree_util import Partial

from aevb.arrays import num_rows
from aevb.models import Datapoint
from aevb.tasks.observed_models import first_guess, observed_models, x_given

POOL_SIZE = 2000  # proposals of importance sampling
NUM_STARTS = 256  # proposals from which chains start


def by_hmc(models, observation, y, keys, *, num_samples, num_chains, num_tuning, num_leapfrog):
    """Sample p(z|y) by Hybrid Monte Carlo; chains start at the best proposals of the encoder and the prior."""
    from aevb.inference import hmc  # BlackJAX is slow to import
    from aevb.inference.harmonic import first_positions

    observed = observed_models(models, observation)
    log_density = Partial(_log_joint, observed[0])
    pool = (NUM_STARTS, num_chains)
    starts, step_sizes = lax.map(lambda row: first_positions(observed, row[0], row[1], *pool), (y, keys))  # (N, C, J)
    N, C, J = starts.shape
    z = hmc.tune_and_sample(
        log_density,
        hmc.init(starts.reshape(N * C, J), jnp.repeat(step_sizes, C)),
        _chain_keys(keys, 1, C).reshape(-1),
        jax.tree.map(lambda rows: jnp.repeat(rows, C, axis=0), y),
        num_tuning=num_tuning,
        num_samples=num_samples,
        num_chains=num_chains,
        num_leapfrog=num_leapfrog,
        target=0.8,
    )
    return z.reshape(num_samples, N, C, J)


def by_importance(models, observation, y, keys, *, num_samples, num_chains, **_):
    """Draw by weight from a pool of proposals from the encoder and the prior."""
    from blackjax.smc.resampling import systematic

    from aevb.inference.importance import propose_pool

    observed, encoder = observed_models(models, observation)

    def of_row(row):
        y, key = row
        key_pool, key_choice, key_order = jax.random.split(key, 3)
        q = None if encoder is None else encoder(y)
        pool, log_weights = propose_pool(observed, q, y, key_pool, POOL_SIZE)
        chosen = systematic(key_choice, jax.nn.softmax(log_weights), num_samples * num_chains)
        return pool[jax.random.permutation(key_order, chosen)]

    z = lax.map(of_row, (y, keys))  # (N, S * C, J)
    return jnp.moveaxis(z.reshape(num_rows(y), num_samples, num_chains, -1), 1, 0)


def by_gibbs(models, observation, y, keys, *, num_samples, num_chains, num_tuning, corrected=False, **_):
    r"""Draw z and x in turn, with the encoder in place of the posterior.

    .. math:: z \sim q(z | x), \quad x \sim p(x | y, z)

    Rezende, Mohamed and Wierstra, "Stochastic backpropagation and approximate inference in deep generative models"
    (2014), appendix F. It samples p(z|y) exactly only if q(z|x) equals p(z|x).
    """
    generative, recognition = models
    # Uncorrected steps first: far from the posterior, all proposals would be rejected (Mattei and Frellsen, 2018).
    num_free = num_tuning // 2 if corrected else num_tuning + num_samples

    def of_chain(y, key):
        key_start, key_steps = jax.random.split(key)

        def step(state, inputs):
            x, z = state
            t, key = inputs
            key_z, key_x, key_accept = jax.random.split(key, 3)
            row = Datapoint.of(y).with_values(x)
            q = recognition(row)
            proposal = q.sample(key_z)
            if corrected:
                log_ratio = _log_ratio(generative, q, row, proposal) - _log_ratio(generative, q, row, z)
                is_accepted = jnp.log(jax.random.uniform(key_accept)) < log_ratio
                proposal = jnp.where(is_accepted | (t < num_free), proposal, z)
            x = x_given(generative, observation, y, proposal, key_x).draw
            return (x.astype(state[0].dtype), proposal), proposal

        x = first_guess(generative, observation, y, key_start)
        steps = jnp.arange(num_tuning + num_samples), jax.random.split(key_steps, num_tuning + num_samples)
        z = recognition(Datapoint.of(y).with_values(x)).sample(key_start)
        return lax.scan(step, (x, z), steps)[1][num_tuning:]  # (S, J)

    z = jax.vmap(lambda y, keys: jax.vmap(lambda key: of_chain(y, key))(keys))(y, _chain_keys(keys, 0, num_chains))
    return jnp.moveaxis(z, 2, 0)  # (N, C, S, J) -> (S, N, C, J)


def by_metropolis_within_gibbs(models, observation, y, keys, **options):
    r"""Draw z and x in turn; the encoder proposes z, and the proposal is accepted or rejected.

    .. math:: \min\left(1, \frac{p(x, z')\, q(z | x)}{p(x, z)\, q(z' | x)}\right)

    Mattei and Frellsen, "Leveraging the exact likelihood of deep latent variable models" (2018). It converges
    to p(z|y) for any encoder.
    """
    return by_gibbs(models, observation, y, keys, corrected=True, **options)


# Name -> function of (models, observation, y, keys (N,)) that returns samples (S, N, C, J). y is (N, d), or a datapoint
# of such rows and what they are conditioned on.
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
