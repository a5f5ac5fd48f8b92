"""What all learners have in common."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_digits

from aevb.estimators import ESTIMATORS
from aevb.learners import AEVB, LEARNERS, UNAMORTIZED, Ascent, Learner, Unamortized, learner_kind
from aevb.learners.optimizers import OPTIMIZERS
from aevb.learners.posterior import PosteriorLearner
from aevb.models import AbstractGenerativeModel, named_leaves, split, standard_models
from aevb.networks import initialize
from aevb.training import Source, choose_step_size, train

X = (load_digits().data[:300] / 16).astype(np.float32)
KEY = jax.random.key(0)
KINDS: dict[str, type[Ascent]] = {**LEARNERS, **{f"{name}, unamortized": kind for name, kind in UNAMORTIZED.items()}}
each_learner = pytest.mark.parametrize("name", KINDS)


def make(name):
    kind = KINDS[name]
    models = kind.prepare(*initialize(standard_models(64, 2, (10,), "bernoulli"), KEY), "gaussian", 2)
    learner = kind(split(models).skeleton, len(X), optimizer=OPTIMIZERS["adagrad"])
    return learner, learner.init(models, 0.02, KEY)


@each_learner
def test_equal_learners_compare_equal(name):
    """Compiled programs are cached by learner: learners made from equal parts must be equal."""
    (first, _), (second, _) = make(name), make(name)
    assert first == second
    assert hash(first) == hash(second)


# The loop scans the steps of each learner, and a scan rejects a step that changes the structure of the state.
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "aevb")) for name in KINDS])
def test_a_step_is_pure_and_keeps_the_structure_of_the_state(name):
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


@pytest.mark.parametrize("name", ["aevb", *(pytest.param(n, marks=pytest.mark.thorough) for n in KINDS if n != "aevb")])
def test_it_improves_its_objective_with_a_chosen_step_size(name):
    learner, state = make(name)
    setting = {"key": KEY, "batch_size": 50}
    step_size = choose_step_size(learner, state, Source(X), np.arange(len(X)), **setting)
    state = state._replace(learning_rate=jnp.asarray(step_size))
    history = train(learner, state, Source(X), np.arange(len(X)), max_epochs=5, **setting).history
    objective = "lower_bound" if learner.has_bound else "log_joint"
    assert history[-1][objective] > history[0][objective] + 1


@each_learner
def test_it_declares_its_capabilities_and_prepares_its_models(name):
    learner, state = make(name)
    assert learner.title
    assert learner.argument == (f"learner={name!r}" if name in LEARNERS else "amortized=False")
    assert set(learner.estimators) <= set(ESTIMATORS)
    assert (learner.row_bound is not None) == learner.has_bound
    generative, recognition = learner.models(state)
    assert isinstance(generative, AbstractGenerativeModel)
    assert jax.eval_shape(generative.log_joint, X[0], jnp.zeros(2)).shape == ()
    assert (recognition is not None) == learner.has_bound
    has_network = any(leaf_name.startswith("[1]") for leaf_name, _ in named_leaves(state.parameters))
    assert has_network == learner.needs_encoder
    is_one_per_row = [np.shape(leaf)[:1] == (len(X),) for leaf in jax.tree.leaves(state.memory)]
    assert any(is_one_per_row) == learner.keeps_rows
    assert np.shape(jax.eval_shape(lambda: jnp.asarray(learner.log_parameter_prior(state)))) == ()


def test_every_class_is_abstract_or_final_and_overrides_nothing_concrete():
    for kind in KINDS.values():
        assert getattr(kind, "__final__", False)
        bases = [base for base in kind.__mro__[1:] if issubclass(base, Ascent)]
        assert all(inspect.isabstract(base) for base in bases)
        for name in vars(kind):
            inherited = [vars(base)[name] for base in bases if name in vars(base)]
            if callable(inspect.unwrap(getattr(kind, name))) and inherited and not name.startswith("__"):
                assert all(getattr(method, "__isabstractmethod__", False) for method in inherited), (kind, name)


def test_arguments_select_a_learner():
    assert learner_kind("aevb") is AEVB
    assert learner_kind("aevb", amortized=False) is Unamortized
    with pytest.raises(ValueError, match="amortized=False needs learner='aevb', but learner='mcem' was given"):
        learner_kind("mcem", amortized=False)
    with pytest.raises(ValueError, match="learner='em': expected one of 'aevb', 'wake-sleep'"):
        learner_kind("em")


def test_all_learners_have_what_the_training_loop_needs():
    members = {*Learner.__annotations__, *(name for name in vars(Learner) if not name.startswith("_"))}
    assert {"row_bound", "init", "models", "draw_noise", "step", "log_parameter_prior", "needs_encoder"} <= members
    for kind in (*KINDS.values(), PosteriorLearner):
        assert [name for name in members if not hasattr(kind, name)] == []
