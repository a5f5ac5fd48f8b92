"""The deep Markov model of NumPyro's example, by its SVI: an epoch is one jitted fori_loop.

As there, all chorales are padded to the longest, q(z_t|x) reads a recurrent network that runs backwards and not the
state before (which is cheaper than a structured smoother), p(x_t|z_t) has two hidden layers, and log q - log p is
sampled.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from common import CHORALES, take_turns
from jax import lax, nn
from numpyro.infer import SVI, Trace_ELBO

from aevb.data.chorales import load_chorales

J, E, H, R, M = (CHORALES[name] for name in ("latent_dim", "emission", "transition", "recurrent", "batch"))
NOTES = 88


def matrix(name, *shape):
    return numpyro.param(name, lambda key: 0.1 * jax.random.normal(key, shape))


def backwards(rolls, lengths):
    """Return padded sequences (n, T, D) in reverse order, padding last."""
    return jax.vmap(lambda roll, length: jnp.roll(roll[::-1], length, axis=0))(rolls, lengths)


def exists(rolls, lengths):
    return (jnp.arange(rolls.shape[1]) < lengths[:, None])[..., None]


def model(rolls, lengths):
    emission = [matrix(f"e{i}", *shape) for i, shape in enumerate([(J, E), (E, E), (E, NOTES)])]
    gate, proposal = ([matrix(f"{name}1", J, H), matrix(f"{name}2", H, J)] for name in ("gate", "proposal"))
    linear, spread = matrix("linear", J, J), matrix("spread", J, J)
    first = numpyro.param("first", lambda key: jax.random.normal(key, (J,)))
    with numpyro.plate("data", len(rolls), subsample_size=M) as chosen:
        x, here = rolls[chosen], exists(rolls[chosen], lengths[chosen])
        z = numpyro.sample("z", dist.Normal(0.0, jnp.ones((x.shape[1], J))).mask(False).to_event(2))
        before = jnp.concatenate([jnp.broadcast_to(first, (M, 1, J)), z[:, :-1]], axis=1)
        g = nn.sigmoid(nn.relu(before @ gate[0]) @ gate[1])
        h = nn.relu(before @ proposal[0]) @ proposal[1]
        p = dist.Normal((1 - g) * (before @ linear) + g * h, nn.softplus(nn.relu(h) @ spread))
        numpyro.sample("p(z)", p.mask(here).to_event(2), obs=z)
        logits = nn.relu(nn.relu(z @ emission[0]) @ emission[1]) @ emission[2]
        numpyro.sample("x", dist.Bernoulli(logits=logits).mask(here).to_event(2), obs=x)


def guide(rolls, lengths):
    reads = [matrix(f"{name}_x", NOTES, R) for name in ("update", "reset", "new")]
    keeps = [matrix(f"{name}_h", R, R) for name in ("update", "reset", "new")]
    mean, spread = matrix("mean", R, J), matrix("q_spread", R, J)
    start = numpyro.param("start", lambda key: jax.random.normal(key, (1, R)))
    with numpyro.plate("data", len(rolls), subsample_size=M) as chosen:
        x, length = rolls[chosen], lengths[chosen]

        def step(h, inputs):
            t, x = inputs
            u, r = (nn.sigmoid(x @ read + h @ keep) for read, keep in zip(reads[:2], keeps[:2], strict=True))
            h = u * h + (1 - u) * jnp.tanh(x @ reads[2] + (r * h) @ keeps[2])
            h = jnp.where((t < length)[:, None], h, 0)
            return h, h

        inputs = jnp.arange(x.shape[1]), jnp.swapaxes(backwards(x, length), 0, 1)
        _, h = lax.scan(step, jnp.broadcast_to(start, (M, R)), inputs)
        h = backwards(jnp.swapaxes(h, 0, 1), length)
        q = dist.Normal(h @ mean, nn.softplus(h @ spread))
        numpyro.sample("z", q.mask(exists(x, length)).to_event(2))


if __name__ == "__main__":
    train = load_chorales().train
    lengths = jnp.asarray([len(roll) for roll in train])
    padded = np.zeros((len(train), int(lengths.max()), NOTES), np.float32)
    for place, roll in enumerate(train):
        padded[place, : len(roll)] = roll
    data = jnp.asarray(padded), lengths
    svi = SVI(model, guide, numpyro.optim.optax_to_numpyro(optax.adam(8e-4)), Trace_ELBO())
    num_steps = len(train) // M

    @jax.jit
    def epoch(state, data):
        return lax.fori_loop(0, num_steps, lambda _, state: svi.update(state, *data)[0], state)

    run = {"state": jax.jit(svi.init)(jax.random.key(0), *data)}

    def sequences_per_second():
        start = time.perf_counter()
        for _ in range(2):
            run["state"] = jax.block_until_ready(epoch(run["state"], data))
        return 2 * num_steps * M / (time.perf_counter() - start)

    take_turns(f"NumPyro {numpyro.__version__} SVI", sequences_per_second)
