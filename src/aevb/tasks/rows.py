"""Encoding and generation of one row; :func:`aevb.training.rowwise` applies them to many.

Paper: §2.1.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpyro.distributions import Distribution
from numpyro.distributions.batch_util import promote_batch_shape

from aevb.arrays import fingerprint
from aevb.models import Datapoint
from aevb.models.generative import conditions

NUM_KEPT = 200


def posterior_mean(recognition, x):
    """Return the mean of q(z|x)."""
    return recognition(x).mean


def encode(recognition, x):
    """Return q(z|x)."""
    return recognition(x)


def promote_batch(q):
    """Return a distribution that `vmap` returned, with its batch shape.

    NumPyro's function skips distributions inside others, such as the Gaussian in a log-normal, which then use the
    noise of one row for all.
    """
    q = promote_batch_shape(q)
    for name in q.gather_pytree_data_fields():
        if isinstance(getattr(q, name, None), Distribution):
            setattr(q, name, promote_batch(getattr(q, name)))
    return q


def posterior_mean_by_hmc(generative, x, key):
    """Return the mean of samples from p(z|x), after as many transitions for warming up and tuning the step size."""
    from aevb.inference import hmc  # BlackJAX is slow to import

    key_start, key_tune, key_keep = jax.random.split(jax.random.fold_in(key, fingerprint(x)), 3)

    def move(z, key, log_step_size):
        return hmc.transition(lambda z: generative.log_joint(x, z), key, z, jnp.exp(log_step_size))

    def tune(chain, key):
        z, log_step_size = chain
        z, acceptance = move(z, key, log_step_size)
        return (z, hmc.adapt(log_step_size, acceptance, gain=0.2)), None

    start = jnp.asarray(generative.latent_distribution().sample(key_start)), jnp.log(0.1)
    (z, log_step_size), _ = lax.scan(tune, start, jax.random.split(key_tune, NUM_KEPT))

    def keep(z, key):
        z, _ = move(z, key, log_step_size)
        return z, z

    _, samples = lax.scan(keep, z, jax.random.split(key_keep, NUM_KEPT))
    return jnp.mean(samples, axis=0)


def decoder_mean(generative, z):
    """Return the mean of p(x|z); z may be a datapoint that says what x is conditioned on."""
    return generative.decoder(Datapoint.of(z).values, *conditions(z)).mean


def numbers_of_rows(num: int) -> np.ndarray:
    """Return the row indices 0, 1, ... as their high and low 16 bits (num, 2): a float32 has only 24 bits."""
    numbers = np.arange(num)
    return np.stack([numbers >> 16, numbers & 0xFFFF], axis=1).astype(np.float32)


def sample(generative, number, key, temperature=None):
    """Draw the row with this index, see :func:`numbers_of_rows`, from the model."""
    p, key = _nth_decoder(generative, number, key, temperature)
    return p.sample(key)


def sample_at(generative, row, key):
    """Draw from p(x|z) for a code `z` and the index of its row, see :func:`numbers_of_rows`."""
    return generative.decoder(row["z"]).sample(_key_of_row(key, row["number"]))


def sample_mean(generative, number, key, temperature=None):
    """Return the decoder's mean for the row with this index."""
    return _nth_decoder(generative, number, key, temperature)[0].mean


def _nth_decoder(generative, number, key, temperature):
    """Return p(x|z) at the z with this index, drawn from the prior and shrunk towards its mean, and a key for x."""
    key_z, key_x = jax.random.split(_key_of_row(key, Datapoint.of(number).values))
    prior = generative.latent_distribution(number)
    z: Any = prior.sample(key_z)
    z = z if temperature is None else prior.mean + temperature * (z - prior.mean)
    return generative.decoder(z, *conditions(number)), key_x


def _key_of_row(key, number):
    high, low = number.astype(jnp.uint32)
    return jax.random.fold_in(key, high * (1 << 16) + low)
