import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax import Array

from aevb.estimators import sgvb_b
from aevb.learners import AEVB
from aevb.models import (
    GaussianMLP,
    GenerativeModel,
    RecognitionModel,
    Rescaled,
    join,
    split,
    standard_models,
    standard_normal,
)
from aevb.networks import initialize

KEY = jax.random.key(0)
X = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
UNITS = dist.Normal(*map(jax.device_put, np.float32([[0, 1, 2, 3], [2, 2, 2, 2]])), validate_args=False)


class LearnedNormal(eqx.Module):
    loc: Array
    log_std: Array

    def __call__(self):
        return dist.Normal(self.loc, jnp.exp(self.log_std)).to_event(1)


class UserConditional(eqx.Module):
    """A user's own network, with fields that are not arrays."""

    network: eqx.nn.MLP
    num_calls: int

    def __call__(self, condition):
        mu, log_std = jnp.split(self.network(condition), 2)
        return dist.Normal(mu, jnp.exp(log_std)).to_event(1)


def rescaled_models():
    decoder = Rescaled(GaussianMLP(2, (3,), 4), UNITS, "output")
    encoder = Rescaled(GaussianMLP(4, (3,), 2), UNITS, "input")
    return GenerativeModel(standard_normal(2), decoder), RecognitionModel(encoder)


def learned_prior_models():
    generative, recognition = rescaled_models()
    return GenerativeModel(LearnedNormal(jnp.zeros(2), jnp.zeros(2)), generative.decoder), recognition


def full_prior_models():
    generative, recognition = standard_models(4, 2, (3,), "gaussian")
    prior = dist.MixtureSameFamily(
        dist.Categorical(jnp.array([0.3, 0.7])), dist.MultivariateNormal(jnp.zeros((2, 2)), jnp.eye(2))
    )
    return GenerativeModel(prior, generative.decoder), recognition


def user_models():
    first, second = jax.random.split(KEY)
    decoder = UserConditional(eqx.nn.MLP(2, 8, 5, 1, activation=jax.nn.softplus, key=first), 3)
    encoder = UserConditional(eqx.nn.MLP(4, 4, 5, 2, key=second), 3)
    return GenerativeModel(standard_normal(2), decoder), RecognitionModel(encoder)


ALL = {
    "standard": lambda: standard_models(4, 2, (3,), "bernoulli"),
    "rescaled": rescaled_models,
    "learned prior": learned_prior_models,
    "mixture prior": full_prior_models,
    "user's networks": user_models,
}


def in_numpy(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf) if eqx.is_array(leaf) else leaf, tree)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=[pytest.mark.thorough] * (name in ("mixture prior", "user's networks")))
        for name, make in ALL.items()
    ],
)
def test_split_and_join_restore_the_model(make):
    models = initialize(make(), KEY, "paper")
    parts = split(models)
    assert eqx.tree_equal(in_numpy(join(*parts)), in_numpy(models))
    assert all(eqx.is_inexact_array(leaf) for leaf in jax.tree.leaves(parts.parameters))
    assert not any(eqx.is_array(leaf) for leaf in parts.skeleton.leaves)
    # Equal structures have equal skeletons, whatever their values: compiled programs are cached by them.
    other = split(initialize(make(), jax.random.key(1), "paper"))
    assert parts.skeleton == other.skeleton
    assert hash(parts.skeleton) == hash(other.skeleton)


@pytest.mark.thorough
def test_skeletons_of_different_models_differ():
    skeletons = [split(make()).skeleton for make in ALL.values()]
    skeletons += [split(standard_models(4, 2, (3,), "bernoulli", activation="relu")).skeleton]
    assert len(set(skeletons)) == len(skeletons)


def test_a_distribution_is_constant_and_a_module_is_learned():
    fixed, learned = split(rescaled_models()), split(learned_prior_models())
    assert jax.tree.leaves(fixed.parameters[0].prior) == []
    assert jax.tree.leaves(fixed.parameters[1].encoder.units) == []
    assert len(jax.tree.leaves(learned.parameters[0].prior)) == 2


def step(models):
    """One step of AEVB; returns the models after it."""
    learner = AEVB(split(models).skeleton, len(X), sgvb_b)
    state = learner.init(models, learning_rate=0.1, key=jax.random.key(0))
    noise = jax.jit(lambda state: learner.draw_noise(state, KEY, X[0], (len(X),)))(state)
    state, info = jax.jit(learner.step)(state, X, noise, np.arange(len(X)))
    assert np.isfinite(info.lower_bound)
    return learner.models(state)


@pytest.mark.thorough
def test_a_step_leaves_prior_and_units_alone():
    before = initialize(rescaled_models(), KEY, "paper")
    after = step(before)
    fixed = [(models[0].prior, models[0].decoder.units, models[1].encoder.units) for models in (before, after)]
    assert eqx.tree_equal(*(jax.tree.map(np.asarray, distributions) for distributions in fixed))
    assert not eqx.tree_equal(in_numpy(after[0].decoder.conditional), in_numpy(before[0].decoder.conditional))


def test_a_step_changes_a_prior_that_is_a_module():
    before = initialize(learned_prior_models(), KEY, "paper")
    after = step(before)
    assert (after[0].prior.loc != before[0].prior.loc).all()
    assert (after[0].prior.log_std != before[0].prior.log_std).all()


@pytest.mark.slow
def test_a_step_changes_a_users_networks():
    before = user_models()
    after = step(before)
    for b, a in zip(jax.tree.leaves(split(before).parameters), jax.tree.leaves(split(after).parameters), strict=True):
        assert (a != b).any()
    assert after[0].decoder.num_calls == 3
