"""What default settings do beyond one run: reduce the learning rate, notice a collapsed model, refit on all rows."""

import warnings
from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

from aevb import VAE
from aevb.fitted import design
from aevb.fitted.annealing import Annealing
from aevb.learners import AEVB
from aevb.models import assemble, split
from aevb.models.linear_start import start_linear
from aevb.training import Resident, Source, Trained, budget, held_out, recipe, train_on
from aevb.training.budget import Patience
from aevb.training.checkpoint import Checkpoints
from aevb.training.evaluation import Batches
from aevb.training.position import REDUCTION, Position
from aevb.vae import fitting

RNG = np.random.default_rng(0)
NOISE = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
LINE = (RNG.normal(size=(60, 1)) + 0.1 * RNG.normal(size=(60, 3))).astype(np.float32)
UNITS = np.zeros(3, np.float32), np.ones(3, np.float32)
KEY = jax.random.key(0)


def start(rows=LINE, learning_rate=1e-2, linear=False):
    models = assemble((3, 1, (8,)), "gaussian", "gelu", UNITS, "glorot", KEY)
    models = start_linear(models, rows) if linear else models
    learner = AEVB(split(models).skeleton, len(rows))
    return learner, learner.init(models, learning_rate, None)


def feed_of(rows=LINE, num_held_out=0):
    numbers = np.arange(len(rows))
    held_out = numbers[:num_held_out] if num_held_out else None
    return Resident(Source(rows), numbers[num_held_out:], 10, held_out)


# ---- the learning rate is reduced -----------------------------------------------


@pytest.fixture
def judged(monkeypatch):
    """Let the held-out bound of each epoch be the next of a list, or -9."""
    bounds = []
    monkeypatch.setattr(
        "aevb.training.loop.judge",
        lambda *_: {"validation_lower_bound": bounds.pop(0) if bounds else -9.0, "validation_kl": 1.0},
    )
    return bounds


def test_the_learning_rate_is_reduced_from_the_best_state_until_the_run_ends(judged):
    judged += [-3.0, -2.0, -4.0, -4.0, -1.0, -4.0, -4.0]
    learner, state = start()
    trained = train_on(learner, state, feed_of(num_held_out=10), key=KEY, max_epochs=50, patience=Patience(2, 2))
    assert trained.stopped_because == "converged"
    assert len(trained.history) == 9  # 2 and 2 without gain, 1 and 2 without gain, 2 without gain
    assert (trained.best_bound, trained.best_path) == (-1.0, (2, 1))
    assert trained.state.learning_rate == pytest.approx(1e-2 * REDUCTION)


def test_a_smaller_learning_rate_starts_at_the_best_state():
    _, state = start()
    worse = state._replace(parameters=jax.tree.map(lambda leaf: leaf + 1, state.parameters))
    now = Position(worse, best_state=state, best_path=(3,), rows_since=5, epochs_since=2).with_reduced_step()
    assert eqx.tree_equal(now.state.parameters, state.parameters)
    assert now.state.learning_rate == pytest.approx(1e-2 * REDUCTION)
    assert (now.path, now.rows_since, now.epochs_since) == ((3,), 0, 0)


def test_a_run_without_reductions_ends_at_once(judged):
    judged += [-3.0, -2.0]
    learner, state = start()
    trained = train_on(learner, state, feed_of(num_held_out=10), key=KEY, max_epochs=50, patience=Patience(2))
    assert (len(trained.history), trained.best_path) == (4, (2,))


def test_the_start_is_kept_if_nothing_is_better(judged):
    judged += [-1.0]  # of the start
    learner, state = start()
    rule = Patience(2, 1, judges_start=True)
    trained = train_on(learner, state, feed_of(num_held_out=10), key=KEY, max_epochs=50, patience=rule)
    assert (trained.best_bound, trained.best_path) == (-1.0, ())
    assert eqx.tree_equal(trained.state.parameters, state.parameters)


@pytest.mark.parametrize("cut", [4, 5, 7])  # epochs: just before, just after and well after the first reduction
def test_a_run_interrupted_around_a_reduction_gives_the_same_result(cut, judged, tmp_path):
    bounds = [-3.0, -2.0, -4.0, -4.0, -1.0, -4.0, -4.0]
    learner, state = start()
    feed, setting = feed_of(num_held_out=10), {"key": KEY, "patience": Patience(2, 2)}
    judged += bounds
    whole = train_on(learner, state, feed, max_epochs=50, **setting)
    judged[:] = bounds

    def checkpoints():
        return Checkpoints(tmp_path, {"run": 1}, 0.0)

    train_on(learner, state, feed, max_epochs=cut, checkpoints=checkpoints(), **setting)
    judged[:] = bounds[cut:]
    resumed = train_on(learner, state, feed, max_epochs=50, checkpoints=checkpoints(), **setting)
    assert (resumed.best_path, len(resumed.history)) == (whole.best_path, len(whole.history))
    assert eqx.tree_equal(resumed.state, whole.state)


# ---- a collapsed model ------------------------------------------------------------


def test_a_model_that_ignores_its_codes_is_collapsed():
    learner, state = start(linear=True)
    trained = Trained(state, [{"kl_divergence": 0.0}])
    assert not recipe.is_collapsed(learner, trained, feed_of())
    asleep = jax.tree.map(lambda leaf: 0 * leaf, state.parameters)
    assert recipe.is_collapsed(learner, replace(trained, state=state._replace(parameters=asleep)), feed_of())
    assert not recipe.is_collapsed(learner, replace(trained, history=[{"kl_divergence": 2.0}]), feed_of())


@pytest.mark.thorough
def test_annealing_makes_latent_variables_active():
    """Weakly dependent columns: at the full weight of the KL term the codes carry less."""
    rows = (0.7 * RNG.normal(size=(60, 1)) + RNG.normal(size=(60, 3))).astype(np.float32)
    learner, state = start(rows)
    feed = feed_of(rows)

    def divergence(state):
        return held_out.judge(learner, Batches(feed.source, feed.train_rows), KEY, state)["validation_kl_divergence"]

    plain = train_on(learner, state, feed, key=KEY, max_epochs=50)
    annealed = replace(learner, annealing=3000)  # ten times as many steps as are made
    state = state._replace(memory=annealed.start_memory((), KEY))
    found = train_on(annealed, state, feed, key=KEY, max_epochs=50)
    assert divergence(found.state) > divergence(plain.state) + 0.5
    last = found.history[-1]
    assert last["lower_bound"] == pytest.approx(last["reconstruction"] - last["kl_divergence"], abs=1e-4)


def test_waiting_does_not_count_while_the_kl_term_is_annealed(judged):
    judged += [-3.0] + 5 * [-9.0] + [-2.0]
    learner, state = start()
    rule = Patience(2, warm_up=20)  # of five steps per epoch
    trained = train_on(learner, state, feed_of(num_held_out=10), key=KEY, max_epochs=50, patience=rule)
    assert len(trained.history) == 6  # four epochs of annealing and two of patience


def test_the_learning_rate_is_reduced_at_a_deadline(judged):
    judged += [-9.0 + 0.1 * epoch for epoch in range(10)]  # always better
    learner, state = start()
    rule = Patience(5, 2, deadlines=(7, 9))
    trained = train_on(learner, state, feed_of(num_held_out=10), key=KEY, max_epochs=10, patience=rule)
    assert trained.best_path == (7, 2, 1)
    assert trained.state.learning_rate == pytest.approx(1e-2 * REDUCTION**2)


@pytest.fixture
def short(monkeypatch):
    """Make the runs of default settings short."""
    for name, value in {"MAX_STEPS": 60, "MAX_EPOCHS": 20, "PATIENCE_STEPS": 20, "PATIENCE_EPOCHS": 5}.items():
        monkeypatch.setattr(budget, name, value)
    monkeypatch.setattr(fitting, "ANNEALING", Annealing(20))


@pytest.mark.thorough
def test_independent_columns_get_a_second_start_and_a_warning(short, monkeypatch):
    annealed = []
    train = fitting.train_on
    monkeypatch.setattr(
        fitting, "train_on", lambda learner, *a, **b: annealed.append(learner.annealing) or train(learner, *a, **b)
    )
    for name, value in {"MAX_STEPS": 300, "PATIENCE_STEPS": 100}.items():
        monkeypatch.setattr(budget, name, value)
    setting = {"init": "glorot", "learning_rate": 1e-2, "progress": False}
    with pytest.warns(UserWarning, match="No latent variable is active"):
        vae = VAE(1, hidden=(8,), likelihood="gaussian", **setting).fit(NOISE)
    assert annealed == [0, 20]
    assert vae.refit_epochs_ is None


@pytest.mark.thorough
def test_a_second_start_that_is_no_longer_collapsed_is_kept_without_a_warning(short, monkeypatch):
    answers = [True, False]
    monkeypatch.setattr(fitting, "is_collapsed", lambda *_: answers.pop(0))
    monkeypatch.setattr(design, "start_linear", lambda models, rows, weights, **options: models)
    runs = []

    def train_again(*arguments, **options):
        trained = train_on(*arguments, **options)
        trained.best_bound = -5.0 + len(runs)  # the second run is better
        runs.append(trained)
        return trained

    monkeypatch.setattr(fitting, "train_on", train_again)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vae = VAE(1, hidden=(8,), likelihood="gaussian", progress=False).fit(LINE)
    assert (len(runs), answers) == (2, [])
    assert vae.history_ == runs[1].history


# ---- all rows -----------------------------------------------------------------------


def test_a_refit_takes_the_epochs_of_each_learning_rate():
    learner, state = start()
    feed = feed_of()
    again = recipe.relearn(learner, state, feed, KEY, (2, 0, 3))
    assert again is not None
    first = train_on(learner, state, feed, key=jax.random.fold_in(KEY, 0), max_epochs=2).state
    reduced = first._replace(learning_rate=state.learning_rate * REDUCTION**2)
    expected = train_on(learner, reduced, feed, key=jax.random.fold_in(KEY, 2), max_epochs=3).state
    assert eqx.tree_equal(again.state, expected)
    none = recipe.relearn(learner, state, feed, KEY, ())
    assert none is not None
    assert eqx.tree_equal(none.state, state)


def test_an_interrupted_refit_is_discarded_with_a_warning(short, monkeypatch):
    def interrupted(learner, state, *_, **__):
        return Trained(state, stopped_because="interrupted")

    monkeypatch.setattr(recipe, "train_on", interrupted)
    vae = VAE(1, hidden=(8,), likelihood="gaussian", init="glorot", progress=False).fit(LINE)
    assert (vae.stopped_because_, vae.refit_epochs_) == ("interrupted", None)


@pytest.mark.thorough
@pytest.mark.filterwarnings("error")
def test_a_default_run_resumes_with_another_max_epochs_and_without_a_false_warning(short, tmp_path):
    setting = {"hidden": (8,), "likelihood": "gaussian", "patience": None, "progress": False}
    epochs = VAE(1, **setting).fit(LINE, checkpoint=tmp_path).history_[-1]["epoch"]
    assert VAE(1, **setting).fit(LINE, checkpoint=tmp_path).history_[-1]["epoch"] == epochs
    longer = VAE(1, max_epochs=2 * epochs, **setting).fit(LINE, checkpoint=tmp_path)
    assert longer.history_[-1]["epoch"] == 2 * epochs


def test_an_interrupt_while_levels_are_measured_leaves_a_usable_model(short, monkeypatch, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("aevb.vae.estimator.measured_dispersion", interrupt)
    vae = VAE(1, hidden=(8,), likelihood="gaussian", max_epochs=2, progress=False)
    with pytest.raises(KeyboardInterrupt):
        vae.fit(LINE)
    assert len(vae.history_) == 2
    vae.save(tmp_path / "model")


def test_the_linear_start_is_for_a_standard_normal_prior():
    generative, recognition = assemble((3, 1, (8,)), "gaussian", "gelu", UNITS, "glorot", KEY)
    shifted = eqx.tree_at(lambda model: model.prior.base_dist.loc, generative, np.ones(1, np.float32))
    for model, is_changed in ((generative, True), (shifted, False)):
        started = start_linear((model, recognition), LINE)
        assert eqx.tree_equal(started[1], recognition) != is_changed


@pytest.mark.parametrize(
    ("arguments", "num_rows"),
    [
        ({}, 60),
        ({"validation_fraction": 0.2}, None),  # what is given keeps its meaning
        ({"max_epochs": 5}, None),
    ],
)
def test_with_few_rows_the_model_is_refit_on_all_of_them(arguments, num_rows, short, monkeypatch):
    seen = []

    def relearn(learner, state, feed, key, path):
        seen.append((feed.num_rows, learner.num_data, feed.held_out))
        return recipe.relearn(learner, state, feed, key, path)

    monkeypatch.setattr(fitting, "relearn", relearn)
    vae = VAE(1, hidden=(8,), likelihood="gaussian", progress=False, **arguments).fit(LINE)
    assert seen == ([(num_rows, num_rows, None)] if num_rows else [])
    assert (vae.refit_epochs_ is None) == (num_rows is None)
    assert vae.refit_epochs_ is None or vae.refit_epochs_ <= vae.history_[-1]["epoch"]


def test_with_many_rows_there_is_no_refit(short, monkeypatch):
    monkeypatch.setattr(fitting, "SMALL", 60)
    assert VAE(1, hidden=(8,), likelihood="gaussian", progress=False).fit(LINE).refit_epochs_ is None
