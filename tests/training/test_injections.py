"""A hundred NaNs, injected into noise, weights or data at random steps: each is detected, and none is kept."""

import re
import warnings
from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file
from sklearn.datasets import load_digits

from aevb import VAE, load
from aevb.learners import AEVB
from aevb.models import split, standard_models
from aevb.networks import initialize
from aevb.training import Resident, Source, feed, loop, train_on
from aevb.training.checkpoint import Checkpoints

pytestmark = pytest.mark.thorough

X = (load_digits().data / 16).astype(np.float32)[:400, ::4]
EPOCHS, STEPS, CHUNK = 3, 20, 5  # chunks of five steps, twenty steps per epoch
LEARNING_RATE = 1e-2
NOISE, DECODER, ENCODER, OPTIMIZER = range(4)
FIRST = {  # what becomes NaN first, and must be named
    NOISE: r"The reconstruction term, log p\(x\|z\) became ",
    DECODER: r"The reconstruction term, log p\(x\|z\) became ",
    ENCODER: r"The encoder's q\(z\|x\) became nan",
    OPTIMIZER: r"The optimizer's state .*\.mu\[0\]\.decoder.* became infinite or nan",
}


@dataclass(frozen=True)
class Injected(AEVB):
    """A learner with NaN in one step if its learning rate is above a limit; both are stored in its memory."""

    def models(self, state):
        return super().models(_poisoned(state))

    def step(self, state, batch, noise, places):
        count, *setting = state.memory
        noise = jnp.where(_is_now(state, NOISE), jnp.nan, noise)
        after, report = super().step(_poisoned(state), batch, noise, places)
        memory = [_planted(leaf, _is_now(state, OPTIMIZER), jnp.inf) for leaf in jax.tree.leaves(after.optimizer_state)]
        memory = jax.tree.unflatten(jax.tree.structure(after.optimizer_state), memory)
        return after._replace(optimizer_state=memory, memory=(count + 1, *setting)), report


def _is_now(state, wanted):
    count, kind, bad_step, limit = state.memory
    return (count == bad_step) & (state.learning_rate > limit) & (kind == wanted)


def _poisoned(state):
    leaves = jax.tree.leaves(state.parameters)
    leaves[0] = _planted(leaves[0], _is_now(state, DECODER), jnp.nan)
    leaves[-1] = _planted(leaves[-1], _is_now(state, ENCODER), jnp.nan)
    return state._replace(parameters=jax.tree.unflatten(jax.tree.structure(state.parameters), leaves))


def _planted(leaf, is_now, value):
    return jnp.where(is_now, value, leaf) if leaf.dtype == jnp.float32 else leaf


@cache
def start():
    models = initialize(standard_models(16, 2, (4,), "bernoulli"), jax.random.key(0))
    learner = Injected(split(models).skeleton, len(X))
    return learner, learner.init(models, LEARNING_RATE, jax.random.key(0))


def is_finite(tree):
    return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(tree) if np.asarray(leaf).dtype.kind == "f")


def run(kind, step, limit, folder):
    learner, state = start()
    state = state._replace(memory=(jnp.asarray(0), jnp.asarray(kind), jnp.asarray(step), jnp.asarray(limit)))
    data = Resident(Source(X), np.arange(len(X)), 20)
    options = {"key": jax.random.key(1), "max_epochs": EPOCHS, "checkpoints": Checkpoints(folder, {}, every=0.0)}
    return train_on(learner, state, data, **options)


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 66))])
def test_injections_into_noise_weights_and_optimizer_state(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(feed, "MAX_CHUNK_STEPS", CHUNK)
    generator = np.random.default_rng(seed)
    kind, step, lasts = seed % 4, int(generator.integers(EPOCHS * STEPS)), bool(generator.random() < 0.5)
    limit = 0.0 if lasts else LEARNING_RATE / 3  # otherwise two halvings help
    names_step = re.compile(rf"at step {step}, with rows? \d.*[Hh]al(ved|ving)")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if lasts and step < CHUNK:  # nothing was learned before
            trained = None
            with pytest.raises(FloatingPointError) as error:
                run(kind, step, limit, tmp_path)
            warnings.warn(str(error.value), stacklevel=1)
        else:
            trained = run(kind, step, limit, tmp_path)
    said = [str(warning.message) for warning in warned]
    assert len(said) == (loop.MAX_HALVINGS + 1 if lasts else 2)
    assert all(names_step.search(text) for text in said)
    assert [text for text in said if not re.match(FIRST[kind], text)] == []
    if trained is not None:
        assert is_finite(trained.state)
        assert trained.stopped_because == ("diverged" if lasts else "max_epochs")
        # The first epoch has a row even if it was not finished: what was learned in it is kept.
        assert len(trained.history) == (max(step // STEPS, 1) if lasts else EPOCHS)
        assert all(np.isfinite(row["lower_bound"]) for row in trained.history)
    files = list(tmp_path.glob("chunk-*"))
    assert bool(files) == (trained is not None)
    assert all(is_finite(load_file(path)) for path in files)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 34))])
def test_injections_into_batches_from_a_generator(seed, tmp_path):
    generator = np.random.default_rng(seed)
    number, row, column = int(generator.integers(1, 40)), int(generator.integers(50)), int(generator.integers(16))
    bad = generator.choice([np.nan, np.inf, -np.inf])

    def batches():
        for place in range(40):
            batch = X[place % 8 * 50 :][:50].copy()
            if place == number:
                batch[row, column] = bad
            yield batch

    setting = {"latent_dim": 2, "hidden": (4,), "batch_size": 20, "likelihood": "bernoulli", "progress": False}
    vae = VAE(**setting)
    late = rf"batch {number} \(from 0\).*row {row}, column {column} is {bad}"
    early = rf"the first 1000 rows of the batches: .*row {50 * number + row}, column {column} is {bad}"
    with pytest.raises(ValueError, match=late if number >= 20 else early) as error:
        vae.fit(batches())
    # The first 20 batches determine units and likelihood: bad values in them are refused before training.
    is_kept = "keeps what it learned" in str(getattr(error.value, "__notes__", ""))
    assert is_kept == (number >= 20)
    if is_kept:
        vae.save(tmp_path / "model")
        assert np.isfinite(load(tmp_path / "model").transform(X)).all()
    else:
        assert not hasattr(vae, "generative_")
