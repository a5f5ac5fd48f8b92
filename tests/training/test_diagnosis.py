"""Which number is named as the first bad one, and in which rows, for all kinds of data, learners and bounds."""

from contextlib import suppress

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aevb.data.batch_feed import BatchFeed
from aevb.data.file_feed import FileFeed
from aevb.data.lanes import lanes_for
from aevb.data.tables import open_tables
from aevb.estimators import importance, sgvb_a, sgvb_b
from aevb.learners import AEVB, FullVB
from aevb.models import BayesianGenerativeModel, split, standard_models
from aevb.networks import initialize
from aevb.training import Resident, Source, train_on

X = np.random.default_rng(0).integers(2, size=(2000, 16)).astype(np.float32)
MODELS = initialize(standard_models(16, 2, (4,), "bernoulli"), jax.random.key(0))
NO_ROWS = np.zeros(0, int)

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore:.*halved the learning rate:RuntimeWarning"),
]


def run(feed, models=MODELS, learner=AEVB, **options):
    learner = learner(split(models).skeleton, len(X), **options)
    state = learner.init(models, 1e-3, jax.random.key(0))
    return train_on(learner, state, feed, key=jax.random.key(1), max_epochs=3)  # each leaves out a few rows


def feed_of(kind, rows, folder):
    if kind == "array":
        return Resident(Source(rows), np.arange(len(rows)), 50)
    if kind == "batches":
        return BatchFeed(iter(np.split(rows, 20)), lambda batch, is_first: batch, 50)
    for number, part in enumerate(np.split(rows, 4 if kind == "folder" else 1)):
        np.save(folder / f"{number}.npy", part)
    tables, others = open_tables(folder), np.arange(0, 2000, 100)
    return FileFeed(tables, 1.0, lanes_for(tables, 50, others), others, None)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("array", "with row 1234 of the data."),
        ("file", "with row 1234 of the data."),
        ("folder", "with row 1234 of the data, counted over all 4 files."),
        ("batches", "with row 1234 of pass 1."),
    ],
)
def test_a_bad_row_is_named_by_its_number_in_every_kind_of_data(kind, words, tmp_path, monkeypatch):
    monkeypatch.setattr("aevb.training.feed.MAX_CHUNK_STEPS", 10)
    monkeypatch.setattr("aevb.data.batch_feed.MAX_STEPS", 10)
    rows = X.copy()
    rows[1234, 5] = np.nan
    with (
        pytest.warns(RuntimeWarning) as warned,
        suppress(FloatingPointError),
    ):  # raised if it happens in the first chunk
        run(feed_of(kind, rows, tmp_path))
    said = [str(warning.message) for warning in warned]
    assert [text for text in said if words not in text] == []


def decoder(layer, name):
    return lambda models: getattr(models[0].decoder.network.layers[layer], name)


def encoder(layer, name):
    return lambda models: getattr(models[1].encoder.network.layers[layer], name)


RECONSTRUCTION, POSTERIOR = r"The reconstruction term, log p\(x\|z\) became -inf", r"The encoder's q\(z\|x\) became"
PRIOR = "The prior on the parameters became -inf"
HUGE = 3e38  # two of these are infinite


@pytest.mark.parametrize("estimator", [sgvb_a, sgvb_b, importance])
@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        (decoder(1, "bias"), HUGE, RECONSTRUCTION),
        (encoder(1, "weight"), HUGE, POSTERIOR),
        (encoder(1, "bias"), 1e25, "The KL divergence of"),
        (encoder(0, "weight"), 1e25, PRIOR),  # its square is infinite, while tanh maps it to 1
    ],
)
def test_the_first_number_is_named_in_the_order_of_computation(where, value, words, estimator):
    models = eqx.tree_at(where, MODELS, jnp.full_like(where(MODELS), value))
    with pytest.raises(FloatingPointError, match=words + r".* at step 0, with rows? \d"):
        run(feed_of("array", X[:100], None), models, estimator=estimator)


def test_without_a_prior_it_is_not_named():
    where = encoder(0, "weight")
    models = eqx.tree_at(where, MODELS, jnp.full_like(where(MODELS), 1e25))
    assert run(feed_of("array", X[:100], None), models, parameter_prior=False).stopped_because == "max_epochs"


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        (decoder(1, "bias"), HUGE, RECONSTRUCTION),
        (encoder(1, "weight"), HUGE, POSTERIOR),
        (decoder(0, "weight"), 1e25, PRIOR),
    ],
)
def test_full_vb_names_its_terms_too(where, value, words):
    generative, recognition = eqx.tree_at(where, MODELS, jnp.full_like(where(MODELS), value))
    models = BayesianGenerativeModel(generative, num_draws=2), recognition
    with pytest.raises(FloatingPointError, match=words + r".* at step 0, with rows? \d"):
        run(feed_of("array", X[:100], None), models, FullVB)
