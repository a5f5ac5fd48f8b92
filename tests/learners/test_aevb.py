import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import optax
import pytest
from sklearn.datasets import load_digits

from aevb.estimators import ESTIMATORS, sgvb_b
from aevb.learners import AEVB, OPTIMIZERS, adagrad
from aevb.models import GaussianMLP, GenerativeModel, RecognitionModel, split, standard_models, standard_normal
from aevb.networks import initialize
from aevb.training import Source, train

DIGITS = (load_digits().data / 16).astype(np.float32)


def make_models(likelihood="bernoulli", data_dim=64, scheme="glorot"):
    return initialize(standard_models(data_dim, 3, (20,), likelihood), jax.random.key(0), scheme)


def learn(models, X=DIGITS, max_epochs=3, learning_rate=1e-3, **options):
    learner = AEVB(split(models).skeleton, len(X), **options)
    state = learner.init(models, learning_rate=learning_rate, key=jax.random.key(0))
    setting = {"key": jax.random.key(1), "batch_size": 100, "max_epochs": max_epochs}
    return learner, train(learner, state, Source(X), np.arange(len(X)), **setting)


@pytest.mark.float64
@pytest.mark.parametrize("parameter_prior", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_step_of_sgd_is_the_gradient_of_the_stated_objective(parameter_prior):
    """(1/N) [N/M sum_i L(x_i) + log N(theta, phi; 0, I)], written out here with a loop."""
    models = make_models(data_dim=5, scheme="paper")
    num_data, batch_size = 40, 4
    rng = np.random.default_rng(0)
    batch, noise = jnp.asarray(rng.uniform(size=(batch_size, 5))), jnp.asarray(rng.normal(size=(batch_size, 2, 3)))
    learner = AEVB(
        split(models).skeleton, num_data, num_samples=2, optimizer=optax.sgd(1.0), parameter_prior=parameter_prior
    )
    state = learner.init(models, learning_rate=0.5, key=jax.random.key(0))
    after, info = jax.jit(learner.step)(state, batch, noise, jnp.arange(len(batch)))

    def objective(parameters):
        models = learner.models(state._replace(parameters=parameters))
        bounds = [sgvb_b(*models, x, epsilon) for x, epsilon in zip(batch, noise, strict=True)]
        squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(parameters))
        return (num_data / batch_size * sum(bounds) - parameter_prior * squares / 2) / num_data, sum(
            bounds
        ) / batch_size

    gradient, bound = jax.jit(jax.grad(objective, has_aux=True))(state.parameters)
    expected = jax.tree.map(lambda p, g: p + 0.5 * g, state.parameters, gradient)
    for a, b in zip(jax.tree.leaves(after.parameters), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    np.testing.assert_allclose(
        info.lower_bound, bound, rtol=1e-12
    )  # nats per datapoint, without the prior on the parameters


def test_noise_is_standard_normal_with_one_draw_per_sample():
    models = make_models()
    learner = AEVB(split(models).skeleton, 10, num_samples=4)
    noise = learner.draw_noise(learner.init(models, 1.0, key=jax.random.key(0)), jax.random.key(0), DIGITS[0], (50, 10))
    assert noise.shape == (50, 10, 4, 3)
    assert abs(noise.mean()) < 5 / np.sqrt(noise.size)
    assert abs(noise.var() - 1) < 5 * np.sqrt(2 / noise.size)


ANY_OPTIMIZER = {
    "sgd": (OPTIMIZERS["sgd"], 1e-2),
    "adagrad": (OPTIMIZERS["adagrad"], 0.02),
    "adam": (OPTIMIZERS["adam"], 1e-3),
    "adamw": (optax.adamw(1e-3), 1.0),
    "clipped rmsprop": (optax.chain(optax.clip_by_global_norm(1.0), optax.rmsprop(1e-3)), 1.0),
    "schedule": (optax.sgd(optax.linear_schedule(1e-2, 1e-3, 100), momentum=0.9), 1.0),
    "injected": (optax.inject_hyperparams(optax.adam)(learning_rate=1e-3), 1.0),
}


SLOW = {"sgd", "adagrad", "adamw", "schedule", "injected"}  # each uses the same code as "adam" or "clipped rmsprop"


@pytest.mark.parametrize(
    ("optimizer", "learning_rate"),
    [pytest.param(*o, id=name, marks=[pytest.mark.slow] * (name in SLOW)) for name, o in ANY_OPTIMIZER.items()],
)
def test_every_optimizer_raises_the_bound(optimizer, learning_rate):
    _, trained = learn(make_models(), optimizer=optimizer, learning_rate=learning_rate)
    bounds = [row["lower_bound"] for row in trained.history]
    assert bounds == sorted(bounds)  # -44 nats at the start: a fair coin for each pixel
    assert bounds[-1] > bounds[0] + 1


@pytest.mark.parametrize(
    ("estimator", "likelihood"),
    [
        ("sgvb-a", "bernoulli"),
        ("score-function", "bernoulli"),
        *(pytest.param(name, "gaussian", marks=pytest.mark.thorough) for name in ("sgvb-b", "importance")),
    ],
)
def test_every_estimator_raises_the_bound(estimator, likelihood):
    _, trained = learn(make_models(likelihood), estimator=ESTIMATORS[estimator], num_samples=2)
    assert trained.history[-1]["lower_bound"] > trained.history[0]["lower_bound"] + 1


@pytest.mark.slow
def test_user_defined_networks_that_contain_functions_learn():
    class Encoder(eqx.Module):
        network: eqx.nn.MLP

        def __call__(self, x):
            mu, log_std = jnp.split(self.network(x), 2)
            return dist.Normal(mu, jnp.exp(log_std)).to_event(1)

    encoder = Encoder(eqx.nn.MLP(64, 6, 20, 1, activation=lambda a: jnp.sin(a), key=jax.random.key(0)))
    decoder = initialize(GaussianMLP(3, (20,), 64), jax.random.key(0))
    models = GenerativeModel(standard_normal(3), decoder), RecognitionModel(encoder)
    learner, trained = learn(models)
    assert trained.history[-1]["lower_bound"] > trained.history[0]["lower_bound"] + 1
    _, recognition = learner.models(trained.state)
    assert (recognition.encoder.network.layers[0].weight != encoder.network.layers[0].weight).any()


def test_adagrad_agrees_with_its_formula():
    transformation = adagrad()
    gradients = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    gradients[:, 2] = 0
    state = transformation.init(jnp.zeros(3))
    for t, gradient in enumerate(gradients):
        updates, state = transformation.update(jnp.asarray(gradient), state)
        expected = -gradient[:2] / np.sqrt(np.sum(gradients[: t + 1, :2] ** 2, axis=0))
        np.testing.assert_allclose(updates[:2], expected, rtol=1e-5)
        assert updates[2] == 0


def test_adagrad_works_on_tiny_gradients():
    updates, _ = adagrad().update(jnp.array([1e-12]), adagrad().init(jnp.zeros(1)))
    np.testing.assert_allclose(updates, -1, rtol=1e-3)


def test_equal_learners_compare_equal():
    """Compiled programs are cached by learner: learners made from equal parts must be equal."""
    first, second = (AEVB(split(make_models()).skeleton, 10, optimizer=OPTIMIZERS["adam"]) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
