"""What all learners have in common, one table."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_digits

from aevb.learners import LEARNERS
from aevb.learners.optimizers import OPTIMIZERS
from aevb.models import BayesianGenerativeModel, split, standard_models
from aevb.networks import initialize
from aevb.training import Source, choose_step_size, train

X = (load_digits().data[:300] / 16).astype(np.float32)
KEY = jax.random.key(0)
each_learner = pytest.mark.parametrize("name", LEARNERS)


def make(name):
    generative, recognition = initialize(standard_models(64, 2, (10,), "bernoulli"), KEY)
    if name == "full-vb":
        generative = BayesianGenerativeModel(generative)
    models = generative, None if name == "mcem" else recognition
    learner = LEARNERS[name](split(models).skeleton, len(X), optimizer=OPTIMIZERS["adagrad"])
    return learner, learner.init(models, 0.02, KEY)


@each_learner
def test_equal_learners_are_one(name):
    """A compiled program is found by its learner: made twice from equal parts, it must be the same."""
    (first, _), (second, _) = make(name), make(name)
    assert first == second
    assert hash(first) == hash(second)


# The loop scans the steps of each learner, and a scan refuses one that changes the form of the state.
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "aevb")) for name in LEARNERS])
def test_a_step_is_a_function_of_its_arguments_and_keeps_the_form_of_the_state(name):
    learner, state = make(name)
    places = jnp.arange(20)
    noise = learner.draw_noise(state, KEY, X[0], (20,))
    step = jax.jit(learner.step)
    (one, info), (other, _) = step(state, X[:20], noise, places), step(state, X[:20], noise, places)
    assert jax.tree.structure(one) == jax.tree.structure(state)
    for a, b, before in zip(*map(jax.tree.leaves, (one, other, state)), strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a.shape, a.dtype) == (before.shape, before.dtype)
    assert np.isfinite(info[0])


@pytest.mark.parametrize(
    "name", ["aevb", *(pytest.param(n, marks=pytest.mark.thorough) for n in LEARNERS if n != "aevb")]
)
def test_it_raises_what_it_maximizes_with_a_chosen_step_size(name):
    learner, state = make(name)
    setting = {"key": KEY, "batch_size": 50}
    step_size = choose_step_size(learner, state, Source(X), np.arange(len(X)), **setting)
    state = state._replace(learning_rate=jnp.asarray(step_size))
    history = train(learner, state, Source(X), np.arange(len(X)), max_epochs=5, **setting).history
    objective = "log_joint" if name == "mcem" else "lower_bound"
    assert history[-1][objective] > history[0][objective] + 1
