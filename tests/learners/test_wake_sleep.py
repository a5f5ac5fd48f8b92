import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import optax
import pytest

from aevb.learners import OPTIMIZERS, WakeSleep
from aevb.learners.wake_sleep import WakeSleepNoise
from aevb.models import GenerativeModel, RecognitionModel, split, standard_models
from aevb.networks import initialize
from aevb.training import Source, train


def make_models(likelihood):
    return initialize(standard_models(5, 3, (4,), likelihood), jax.random.key(0), "paper")


@pytest.mark.float64
@pytest.mark.parametrize(
    ("likelihood", "num_samples"), [pytest.param("bernoulli", 1, marks=pytest.mark.slow), ("gaussian", 2)]
)
def test_a_step_of_sgd_is_the_gradient_of_the_two_objectives(likelihood, num_samples):
    """Wake: log p(x, z) in theta at z of q. Sleep: log q(z|x) in phi at dreams."""
    models = make_models(likelihood)
    learner = WakeSleep(split(models).skeleton, 40, num_samples=num_samples, optimizer=optax.sgd(1.0))
    state = learner.init(models, learning_rate=0.5, key=jax.random.key(0))
    batch = jnp.asarray(np.random.default_rng(0).uniform(size=(4, 5)))
    noise = learner.draw_noise(state, jax.random.key(1), batch[0], (4,))
    after, info = jax.jit(learner.step)(state, batch, noise, jnp.arange(len(batch)))

    @jax.jit
    def expect(parameters, batch, noise):
        generative, recognition = learner.models(state)
        x = jnp.repeat(batch, num_samples, axis=0)
        z = jax.vmap(lambda x, key: recognition(x).sample(key))(x, noise.wake.reshape(-1))
        dreams, causes = jax.vmap(generative.sample_joint)(noise.sleep.reshape(-1))

        def wake(theta):
            generative, _ = learner.models(state._replace(parameters=(theta, parameters[1])))
            return jnp.mean(jax.vmap(generative.log_joint)(x, z))

        def log_q(phi, x, z):
            _, recognition = learner.models(state._replace(parameters=(parameters[0], phi)))
            return jnp.mean(jax.vmap(lambda x, z: recognition(x).log_prob(z))(x, z))

        log_p, gradient = jax.value_and_grad(wake)(parameters[0])
        gradients = gradient, jax.grad(log_q)(parameters[1], dreams, causes)
        after = jax.tree.map(lambda p, g: p + 0.5 * (g - p / 40), parameters, gradients)
        return after, log_p - log_q(parameters[1], x, z)

    expected, bound = expect(state.parameters, batch, noise)
    for a, b in zip(jax.tree.leaves(after.parameters), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(info.lower_bound, bound, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.float64
def test_latent_variables_need_not_be_reparameterizable():
    """Bernoulli latent variables, the advantage of wake-sleep that the paper names (§4). One bit generates three."""

    class Bits(eqx.Module):
        logits: jax.Array

        def __call__(self, condition):
            return dist.BernoulliLogits(self.logits @ jnp.append(condition, 1.0)).to_event(1)

    generative = GenerativeModel(dist.BernoulliLogits(jnp.zeros(1)).to_event(1), Bits(jnp.zeros((3, 2))))
    models = generative, RecognitionModel(Bits(jnp.zeros((1, 4))))
    learner = WakeSleep(split(models).skeleton, 400, parameter_prior=False, optimizer=OPTIMIZERS["adam"])
    rng = np.random.default_rng(0)
    X = np.where(rng.random((400, 3)) < 0.05, 1 - (bits := rng.integers(2, size=(400, 1))), bits).astype(np.float64)
    trained = train(
        learner,
        learner.init(models, 0.02, key=jax.random.key(0)),
        Source(X),
        np.arange(400),
        key=jax.random.key(4),
        batch_size=100,
        max_epochs=300,
    )
    logits = np.asarray(learner.models(trained.state)[0].decoder.logits)
    means = [1 / (1 + np.exp(-logits @ [z, 1])) for z in (0, 1)]
    assert np.abs(means[0] - means[1]).min() > 0.8  # 0.9 in truth


def test_dreams_come_from_the_keys_of_sleep():
    models = make_models("bernoulli")
    learner = WakeSleep(split(models).skeleton, 10)
    noise = learner.draw_noise(learner.init(models, 1.0, jax.random.key(0)), jax.random.key(0), jnp.zeros(5), (6, 3))
    assert isinstance(noise, WakeSleepNoise)
    keys = np.asarray(jax.random.key_data(jnp.stack(noise))).reshape(-1, 2)
    assert keys.shape == (2 * 6 * 3, 2)
    assert len(np.unique(keys, axis=0)) == len(keys)  # none is used twice
