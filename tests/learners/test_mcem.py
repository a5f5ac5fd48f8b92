from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from aevb.learners import MCEM
from aevb.models import GenerativeModel, split, standard_models
from aevb.networks import initialize
from aevb.training import Source, train

NUM_DATA = 30
KEY = jax.random.key(0)


@pytest.fixture
def models() -> tuple[GenerativeModel, None]:
    generative, _ = initialize(standard_models(5, 3, (4,), "bernoulli"), KEY, "paper")
    return generative, None


def make(models, **options):
    learner = MCEM(split(models).skeleton, NUM_DATA, **options)
    return learner, learner.init(models, learning_rate=0.5, key=KEY)


@partial(jax.jit, static_argnums=0)
def step(learner, *arguments):
    return learner.step(*arguments)


def take_step(learner, state, rows=(4, 7)):
    batch = jnp.asarray(np.random.default_rng(0).uniform(size=(len(rows), 5)), jnp.result_type(float))
    keys = learner.draw_noise(state, jax.random.key(1), batch[0], (len(rows),))
    return batch, *step(learner, state, batch, keys, jnp.asarray(rows))


@pytest.mark.thorough
def test_only_the_chains_of_the_minibatch_move(models):
    learner, state = make(models)
    _, after, info = take_step(learner, state)
    moved = np.any(np.asarray(after.memory.positions != state.memory.positions), axis=(1, 2))
    assert moved[[4, 7]].any()
    assert not np.delete(moved, [4, 7]).any()
    assert 0 <= info.acceptance <= 1


@pytest.mark.float64
@pytest.mark.thorough
def test_weights_climb_the_log_joint_at_the_new_samples(models):
    """Five explicit steps of gradient ascent."""
    models = jax.tree.map(lambda leaf: leaf.astype(np.float64), models)
    learner, state = make(models, optimizer=optax.sgd(1.0), num_samples=2)
    batch, after, info = take_step(learner, state)
    z = after.memory.positions[jnp.array([4, 7])]  # (M, L, J)

    @jax.jit
    @jax.value_and_grad
    def objective(parameters):
        generative, _ = learner.models(state._replace(parameters=parameters))
        return sum(generative.log_joint(x, one) for x, chains in zip(batch, z, strict=True) for one in chains) / 4

    parameters = state.parameters
    np.testing.assert_allclose(info.log_joint, objective(parameters)[0], rtol=1e-10)
    for _ in range(5):
        _, gradient = objective(parameters)
        parameters = jax.tree.map(lambda p, g: p + 0.5 * (g - p / NUM_DATA), parameters, gradient)
    for a, b in zip(jax.tree.leaves(after.parameters), jax.tree.leaves(parameters), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("step_size", "grows"), [(0.01, True), (50.0, False)])
def test_the_step_size_follows_the_acceptance(models, step_size, grows):
    learner, state = make(models)
    state = state._replace(memory=state.memory._replace(log_step_size=jnp.log(step_size)))
    _, after, info = take_step(learner, state)
    assert (info.acceptance > learner.target_acceptance) == grows
    change = after.memory.log_step_size - state.memory.log_step_size
    np.testing.assert_allclose(change, 0.05 * (info.acceptance - 0.9), rtol=1e-3)


def test_chains_belong_to_training_places_not_to_source_rows(models):
    """Rows 100 to 129 of the source are the learner's places 0 to 29."""
    learner, state = make(models)
    X = np.random.default_rng(0).uniform(size=(200, 5)).astype(np.float32)
    rows = np.arange(100, 100 + NUM_DATA)
    trained = train(learner, state, Source(X), rows, key=KEY, batch_size=10, max_epochs=2)
    assert np.any(trained.state.memory.positions != state.memory.positions, axis=(1, 2)).mean() > 0.5
    assert trained.history[-1].keys() == {"epoch", "samples", "log_joint", "acceptance", "seconds"}
