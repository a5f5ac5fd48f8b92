import re
import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import Array
from sklearn.datasets import load_digits

from aevb.estimators import sgvb_b
from aevb.learners import AEVB, OPTIMIZERS, StepInfo
from aevb.models import Conversion, Numbers, split, standard_models
from aevb.networks import initialize
from aevb.training import Source, choose_step_size, feed, held_out, loop, lower_bounds, train

BYTES = (load_digits().data * 15).astype(np.uint8)  # 0, 15, ..., 240
DIGITS = BYTES.astype(np.float32) * np.float32(1 / 255)
ROWS = np.arange(1000)
HELD_OUT = np.arange(1000, 1797)
MODELS = standard_models(64, 2, (20,), "bernoulli")
STEPS = 10  # per epoch, which is one chunk


def start(optimizer=OPTIMIZERS["adam"], learning_rate=1e-3, estimator=sgvb_b, num_data=1000):
    models = initialize(MODELS, jax.random.key(0))
    learner = AEVB(split(models).skeleton, num_data, estimator, optimizer=optimizer)
    return learner, learner.init(models, learning_rate, key=jax.random.key(0))


def run(learner, state, max_epochs=3, seed=0, source=None, rows=ROWS, **options):
    source = Source(DIGITS) if source is None else source
    setting = {"key": jax.random.key(seed), "batch_size": 100, "max_epochs": max_epochs}
    return train(learner, state, source, rows, **setting, **options)


class Planted(NamedTuple):
    """State of an optimizer whose update in one step (from 0) is not finite, nor is the bound of the next step."""

    count: Array
    bad_step: Array
    is_infinite: Array


def _update(updates, state, params=None):
    value = jnp.where(state.is_infinite, jnp.inf, jnp.nan)
    factor = jnp.where(state.count == state.bad_step, value, 1.0)
    return jax.tree.map(lambda u: u * factor, updates), state._replace(count=state.count + 1)


PLANTED = optax.chain(
    optax.adam(1.0), optax.GradientTransformation(lambda params: Planted(*map(jnp.asarray, (0, -1, False))), _update)
)


def start_bad(step, value=np.nan, **options):
    learner, state = start(PLANTED, **options)
    planted = Planted(*map(jnp.asarray, (0, step, bool(np.isinf(value)))))
    optimizer_state = jax.tree.map(
        lambda node: planted if isinstance(node, Planted) else node,
        state.optimizer_state,
        is_leaf=lambda node: isinstance(node, Planted),
    )
    return learner, state._replace(optimizer_state=optimizer_state)


# ---- what a run is ------------------------------------------------------------


def test_history_has_one_row_per_epoch():
    rows = []
    trained = run(*start(), validation_rows=HELD_OUT, callback=rows.append)
    assert trained.stopped_because == "max_epochs"
    assert trained.history == rows
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert [row["samples"] for row in rows] == [1000, 2000, 3000]
    bounds = ["lower_bound", "reconstruction", "kl_divergence"]
    columns = ["epoch", "samples", *bounds, *(f"validation_{name}" for name in bounds), "seconds"]
    assert all(list(row) == columns for row in rows)
    for prefix in ("", "validation_"):
        for row in rows:
            difference = row[f"{prefix}reconstruction"] - row[f"{prefix}kl_divergence"]
            assert row[f"{prefix}lower_bound"] == pytest.approx(difference, rel=1e-5)
    assert all(a["seconds"] <= b["seconds"] for a, b in pairwise(rows))
    assert "validation_lower_bound" not in run(*start(), max_epochs=1).history[0]


def test_the_step_is_traced_once():
    traces = []

    def counting(*arguments):
        traces.append(1)
        return sgvb_b(*arguments)

    learner, state = start(estimator=counting)
    run(learner, state)
    assert len(traces) == 1
    run(learner, state, seed=1)
    again, state = start(estimator=counting, learning_rate=1e-4)  # an equal learner, another learning rate
    run(again, state)
    choose_step_size(again, state, Source(DIGITS), ROWS, key=jax.random.key(0), batch_size=100)
    assert len(traces) == 1


def test_equal_keys_give_equal_bits_and_others_do_not():
    first, second, third = (run(*start(), seed=seed).state.parameters for seed in (0, 0, 1))
    assert eqx.tree_equal(first, second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(third), strict=True):
        assert (a != b).any()


def test_the_callers_models_and_state_survive():
    learner, state = start()
    before = jax.tree.map(np.array, state)
    trained = run(learner, state)
    assert eqx.tree_equal(jax.tree.map(np.array, state), before)
    assert not eqx.tree_equal(trained.state.parameters, state.parameters)


@pytest.mark.thorough
def test_training_on_bytes_equals_training_on_floats():
    floats = run(*start(), source=Source(DIGITS))
    stored = run(*start(), source=Source(BYTES, Conversion(Numbers(1 / 255))))
    assert eqx.tree_equal(floats.state, stored.state)
    assert [row["lower_bound"] for row in floats.history] == [row["lower_bound"] for row in stored.history]


def test_a_run_depends_on_all_of_its_rows_and_no_others():
    other = DIGITS.copy()
    other[1000:] = 0.5
    assert eqx.tree_equal(run(*start()).state, run(*start(), source=Source(other)).state)
    other = DIGITS.copy()
    other[:1000:10] = 0.5
    assert not eqx.tree_equal(run(*start()).state, run(*start(), source=Source(other)).state)


def test_an_epoch_reads_each_row_once():
    """Checked with a learner that records its batches, which contain row indices."""
    seen = []

    class Recorder(eqx.Module):
        def draw_noise(self, state, key, x, shape):
            return jnp.zeros(shape)

        def step(self, state, batch, noise, rows):
            jax.debug.callback(lambda rows: seen.extend(np.ravel(rows)), batch)
            return state, StepInfo(state.lower_bound)

    class State(eqx.Module):
        lower_bound: Array
        parameters: Array

    state = State(jnp.zeros(()), jnp.zeros(()))
    numbers = Source(np.arange(1797)[:, None])
    train(Recorder(), state, numbers, ROWS, key=jax.random.key(0), batch_size=100, max_epochs=2)
    jax.effects_barrier()
    assert len(seen) == 2000
    assert sorted(seen[:1000]) == sorted(seen[1000:]) == list(range(1000))
    assert seen[:1000] != seen[1000:]


@pytest.mark.parametrize(
    ("num_rows", "batch_size"),
    [(1, 100), (99, 100), (100, 100), (1797, 100), (60_000, 100), (50_001, 7), (11, 2), (5, 2)],
)
def test_plans_read_nearly_everything_in_short_chunks(num_rows, batch_size):
    plan = feed.ChunkPlan.of(num_rows, batch_size)
    assert 1 <= plan.num_steps <= feed.MAX_CHUNK_STEPS
    left_out = num_rows - plan.samples_per_epoch
    assert 0 <= left_out < plan.batch_size * (plan.num_chunks + 1)


def test_plans_read_nearly_everything_if_memory_allows_only_short_chunks():
    for most in range(1, 20):
        for num_steps in (*range(100, 140), 6377):
            plan = feed.ChunkPlan.of_steps(num_steps, 1, most)
            assert 1 <= plan.num_steps <= most
            assert 0.95 * num_steps <= plan.samples_per_epoch <= num_steps


@pytest.mark.thorough
def test_fewer_rows_than_a_batch_are_one_batch():
    trained = run(*start(num_data=30), rows=ROWS[:30])
    assert trained.history[-1]["samples"] == 90


# ---- how a run ends ------------------------------------------------------------


@pytest.mark.parametrize(("step", "value"), [(15, np.nan), (12, np.inf), (19, np.nan), (29, np.nan)])
def test_bad_numbers_stop_the_run_at_the_last_good_state(step, value):
    """Steps 19 and 29 are the last of their chunks: there only the parameters show it."""
    learner, state = start_bad(step, value)
    words = f"The gradient of generative.decoder.* at step {step}, with rows .*5 times did not help.*last good state"
    with pytest.warns(RuntimeWarning) as warned:
        trained = run(learner, state)
    assert re.search(words, str(warned[-1].message))
    assert len(warned) == 1 + loop.MAX_HALVINGS
    assert trained.stopped_because == "diverged"
    epochs = step // STEPS
    assert len(trained.history) == epochs
    assert eqx.tree_equal(trained.state.parameters, run(learner, state, max_epochs=epochs).state.parameters)


@pytest.mark.parametrize("step", [3, 9])
@pytest.mark.filterwarnings("ignore:.*halved the learning rate:RuntimeWarning")
def test_bad_numbers_before_any_good_state_are_an_error(step):
    learner, state = start_bad(step)
    with pytest.raises(FloatingPointError, match=f"at step {step}.*learning_rate"):
        run(learner, state)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.parameters))


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_good_chunks_of_the_first_epoch_are_kept(monkeypatch):
    monkeypatch.setattr(feed, "MAX_CHUNK_STEPS", 4)  # five chunks of two steps
    trained = run(*start_bad(4))
    assert trained.stopped_because == "diverged"
    assert [row["samples"] for row in trained.history] == [400]  # of the good part
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(trained.state.parameters))


@dataclass(frozen=True)
class Fragile(AEVB):
    """A learner whose bound is NaN at large learning rates."""

    def step(self, state, batch, noise, places):
        after, report = super().step(state, batch, noise, places)
        is_too_large = state.learning_rate > 3e-3
        return after, report._replace(lower_bound=jnp.where(is_too_large, jnp.nan, report.lower_bound))


@pytest.mark.thorough
def test_a_learning_rate_that_is_too_large_is_halved_until_it_works():
    learner, state = start(learning_rate=1e-2)
    learner = Fragile(learner.skeleton, 1000)
    with pytest.warns(RuntimeWarning) as warned:
        trained = run(learner, state)
    assert "Returned to step 0 and halved the learning rate, to 0.0025" in str(warned[1].message)
    assert trained.stopped_because == "max_epochs"
    assert len(trained.history) == 3
    expected = run(learner, state._replace(learning_rate=jnp.asarray(0.0025)))
    assert eqx.tree_equal(trained.state, expected.state)


@pytest.mark.filterwarnings("ignore:.*halved the learning rate:RuntimeWarning")
def test_nan_in_the_data_is_named_by_its_row():
    X = DIGITS.copy()
    X[17, 3] = np.nan
    with pytest.raises(FloatingPointError, match=r"The encoder's q\(z\|x\) became nan .*with row 17 of the data\."):
        run(*start(), source=Source(X))


def test_an_interrupt_keeps_the_model_so_far(capsys):
    learner, state = start()

    def stop(row):
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    trained = run(learner, state, max_epochs=5, callback=stop)
    assert trained.stopped_because == "interrupted"
    assert len(trained.history) == 2
    assert eqx.tree_equal(trained.state, run(learner, state, max_epochs=2).state)


def test_an_interrupt_just_after_a_chunk_keeps_the_previous_state(monkeypatch):
    """The worst moment: the state was donated, and the next one is not available yet."""
    learner, state = start()
    expected = run(learner, state, max_epochs=2).state
    chunks, run_chunk = [], loop.run_chunk

    def interrupted(*arguments, **options):
        result = run_chunk(*arguments, **options)
        chunks.append(1)
        if len(chunks) == 3:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(loop, "run_chunk", interrupted)
    trained = run(learner, state, max_epochs=5)
    assert trained.stopped_because == "interrupted"
    assert eqx.tree_equal(trained.state, expected)


@pytest.mark.thorough
def test_early_stopping_returns_the_best_state():
    """A model soon overfits thirty rows, and the held-out bound falls."""
    learner, state = start(learning_rate=3e-2, num_data=30)
    key = jax.random.key(0)
    trained = run(learner, state, max_epochs=500, rows=ROWS[:30], validation_rows=HELD_OUT, patience=10)
    bounds = [row["validation_lower_bound"] for row in trained.history]
    assert trained.stopped_because == "converged"
    assert len(bounds) == np.argmax(bounds) + 1 + 10
    assert bounds[-1] < max(bounds)
    held_out_key = jax.random.split(key, 3)[2]
    num_draws = min(held_out.MAX_DRAWS, -(-held_out.JUDGED_DRAWS // len(HELD_OUT)))
    best = lower_bounds(*learner.models(trained.state), Source(DIGITS), HELD_OUT, held_out_key, sgvb_b, num_draws)
    assert float(best.mean()) == max(bounds)


@pytest.mark.filterwarnings("ignore:.*halved the learning rate:RuntimeWarning")
def test_an_interrupted_or_diverged_run_returns_the_best_state_too():
    learner, state = start_bad(10 * STEPS + 5, learning_rate=-1e-3)  # downhill, so that it gets worse at once
    with pytest.warns(RuntimeWarning):
        trained = run(learner, state, max_epochs=20, validation_rows=HELD_OUT)
    best = int(np.argmax([row["validation_lower_bound"] for row in trained.history])) + 1
    assert best < len(trained.history)
    assert eqx.tree_equal(trained.state.parameters, run(learner, state, max_epochs=best).state.parameters)


# ---- the step size ------------------------------------------------------------


def choose(candidates, state=None):
    learner, fresh = start(OPTIMIZERS["adagrad"])
    state = fresh if state is None else state
    return choose_step_size(
        learner, state, Source(DIGITS), ROWS, key=jax.random.key(0), batch_size=100, candidates=candidates
    )


def test_the_best_step_size_is_chosen():
    assert choose((1e-6, 0.05, 1e-5)) == 0.05


@pytest.mark.parametrize("blown_up", [1e6, 1e30])
def test_candidates_that_diverge_lose(blown_up):
    _, state = start(OPTIMIZERS["adagrad"])
    assert choose((blown_up, 0.01), state) == 0.01
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.parameters))


def test_if_all_candidates_diverge_there_is_an_error():
    with pytest.raises(FloatingPointError, match="learning_rate"):
        choose((1e30, 1e35))


def test_a_candidate_that_diverges_in_its_last_step_loses():
    learner, state = start_bad(STEPS - 1)
    setting = {"key": jax.random.key(0), "batch_size": 100, "candidates": (0.01,)}
    with pytest.raises(FloatingPointError, match="learning_rate"):
        choose_step_size(learner, state, Source(DIGITS), ROWS, **setting)


def test_no_warnings_in_an_ordinary_run():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(*start(), max_epochs=1)


@pytest.mark.thorough
def test_steps_with_convolutions_run_one_by_one_with_the_same_result():
    """On a CPU a compiled loop over them is slow; which way is taken must not change what is learned."""
    from aevb.fitted.design import Design
    from aevb.models import MatrixFormat
    from aevb.settings import Arguments
    from aevb.training import chunk_steps

    # Not Adam: it enlarges rounding errors of weights without an effect, such as a bias before normalization.
    arguments = Arguments(network="conv", latent_dim=2, hidden=(4,), optimizer="sgd")
    design = Design.of(arguments, "bernoulli", MatrixFormat(64, image_shape=(8, 8)), 2)
    learner, state = design.start(design.models(jax.random.key(0)), 30, 1e-2, jax.random.key(0))
    key, plan = jax.random.key(0), feed.ChunkPlan.of(30, 10)
    arguments = (Source(DIGITS), np.arange(30), np.arange(30), key, 0)
    options = {"learner": learner, "plan": plan}
    assert chunk_steps.has_slow_loop(loop._trace, state, *arguments, **options)
    dense, dense_state = start()
    assert not chunk_steps.has_slow_loop(loop._trace, dense_state, *arguments, learner=dense, plan=plan)
    alone, report = chunk_steps.one_by_one(loop.copy_state(state), *arguments, **options)
    scanned, expected = loop.run_chunk(loop.copy_state(state), *arguments, **options)
    np.testing.assert_allclose(report.lower_bound, expected.lower_bound, rtol=1e-5)
    for one, other in zip(jax.tree.leaves(alone), jax.tree.leaves(scanned), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
