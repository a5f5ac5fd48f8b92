"""NumPyro's SVI as in its own VAE example (softplus, Adam, batches of 128), with the network of the race."""

import time

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, TraceMeanField_ELBO
from race_common import DATA_DIM, EXAMPLE_BATCH, HIDDEN, LATENT_DIM, Curve, load_images, setting


def linear(name, in_size, out_size):
    scale = jnp.sqrt(2 / (in_size + out_size))  # Glorot's, as in the example
    weight = numpyro.param(f"{name}.weight", lambda key: scale * jax.random.normal(key, (in_size, out_size)))
    return lambda x: x @ weight + numpyro.param(f"{name}.bias", jnp.zeros(out_size))


def model(batch):
    hidden, output = linear("hidden", LATENT_DIM, HIDDEN), linear("output", HIDDEN, DATA_DIM)
    with numpyro.plate("data", len(batch)):
        z = numpyro.sample("z", dist.Normal(0, 1).expand([LATENT_DIM]).to_event(1))
        likelihood = dist.Bernoulli(logits=output(jax.nn.softplus(hidden(z))), validate_args=False)
        numpyro.sample("x", likelihood.to_event(1), obs=batch)


def guide(batch):
    layer = linear("encoder", DATA_DIM, HIDDEN)
    mean, log_scale = linear("mean", HIDDEN, LATENT_DIM), linear("log_scale", HIDDEN, LATENT_DIM)
    with numpyro.plate("data", len(batch)):
        h = jax.nn.softplus(layer(batch))
        numpyro.sample("z", dist.Normal(mean(h), jnp.exp(log_scale(h))).to_event(1))


if __name__ == "__main__":
    learning_rate, max_epochs = setting()
    train, test = map(jnp.asarray, load_images())
    svi = SVI(model, guide, numpyro.optim.Adam(learning_rate), TraceMeanField_ELBO())
    curve, start = Curve(), time.perf_counter()
    num_steps = len(train) // EXAMPLE_BATCH

    @jax.jit
    def epoch(state, key, train):  # as an argument: a constant would take long to compile
        order = jax.random.permutation(key, len(train))[: num_steps * EXAMPLE_BATCH].reshape(-1, EXAMPLE_BATCH)

        def body(i, state):
            return svi.update(state, train[order[i]].astype(jnp.float32) / 255)[0]

        return jax.lax.fori_loop(0, num_steps, body, state)

    evaluate = jax.jit(lambda state, test: -svi.evaluate(state, test.astype(jnp.float32) / 255) / len(test))
    state, seconds = svi.init(jax.random.key(0), train[:EXAMPLE_BATCH].astype(jnp.float32) / 255), 0.0
    for number in range(1, max_epochs + 1):
        state = jax.block_until_ready(epoch(state, jax.random.key(number), train))
        seconds += time.perf_counter() - start
        if curve.add(seconds, number * num_steps * EXAMPLE_BATCH, evaluate(state, test)):
            break
        start = time.perf_counter()
    curve.print(f"NumPyro {numpyro.__version__} SVI, rate {learning_rate:g}")
