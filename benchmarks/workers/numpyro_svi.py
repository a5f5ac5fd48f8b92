"""NumPyro's SVI with an amortized guide; an epoch is one jitted fori_loop, as in NumPyro's own VAE example."""

import time

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import optax
from common import BATCH_SIZE, DATA_DIM, HIDDEN, IS_GAUSSIAN, LATENT_DIM, NUM_DATA, load_rows, take_turns
from numpyro.infer import SVI, TraceMeanField_ELBO


def linear(name, in_size, out_size):
    weight = numpyro.param(f"{name}.weight", lambda key: 0.1 * jax.random.normal(key, (in_size, out_size)))
    bias = numpyro.param(f"{name}.bias", lambda key: 0.1 * jax.random.normal(key, (out_size,)))
    return lambda x: x @ weight + bias


def model(batch):
    hidden, output = linear("hidden", LATENT_DIM, HIDDEN), linear("output", HIDDEN, (1 + IS_GAUSSIAN) * DATA_DIM)
    with numpyro.plate("data", NUM_DATA, subsample_size=len(batch)):
        z = numpyro.sample("z", dist.Normal(0, 1).expand([LATENT_DIM]).to_event(1))
        outputs = output(jnp.tanh(hidden(z)))
        if IS_GAUSSIAN:
            mean, log_variance = jnp.split(outputs, 2, axis=-1)
            likelihood = dist.Normal(mean, jnp.exp(log_variance / 2))
        else:
            likelihood = dist.Bernoulli(logits=outputs, validate_args=False)
        numpyro.sample("x", likelihood.to_event(1), obs=batch)


def guide(batch):
    layer = linear("encoder", DATA_DIM, HIDDEN)
    mean, log_variance = linear("mean", HIDDEN, LATENT_DIM), linear("log_variance", HIDDEN, LATENT_DIM)
    with numpyro.plate("data", NUM_DATA, subsample_size=len(batch)):
        h = jnp.tanh(layer(batch))
        numpyro.sample("z", dist.Normal(mean(h), jnp.exp(log_variance(h) / 2)).to_event(1))


def read(batch):
    return batch if IS_GAUSSIAN else batch.astype(jnp.float32) / 255


if __name__ == "__main__":
    rows = jnp.asarray(load_rows())
    optimizer = optax.chain(optax.add_decayed_weights(1.0), optax.adagrad(0.02))
    svi = SVI(model, guide, numpyro.optim.optax_to_numpyro(optimizer), TraceMeanField_ELBO())

    @jax.jit
    def epoch(state, key):
        order = jax.random.permutation(key, NUM_DATA).reshape(-1, BATCH_SIZE)

        def body(i, state):
            return svi.update(state, read(rows[order[i]]))[0]

        return jax.lax.fori_loop(0, len(order), body, state)

    run = {"state": svi.init(jax.random.key(0), read(rows[:BATCH_SIZE])), "epoch": 0}

    def samples_per_second():
        start = time.perf_counter()
        for _ in range(2):
            run["epoch"] += 1
            run["state"] = jax.block_until_ready(epoch(run["state"], jax.random.key(run["epoch"])))
        return 2 * NUM_DATA / (time.perf_counter() - start)

    take_turns(f"NumPyro {numpyro.__version__} SVI", samples_per_second)
