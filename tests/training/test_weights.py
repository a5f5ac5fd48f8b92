"""Rows with weights are visited in proportion: expectations are exact sums over the starts of systematic sampling."""

import jax
import numpy as np
import pytest

from aevb.arrays import checksum
from aevb.estimators import sgvb_b
from aevb.learners import AEVB
from aevb.models import join, split, standard_models
from aevb.networks import initialize
from aevb.training import Resident, Source
from aevb.training.evaluation import Batches
from aevb.training.feed import shuffle
from aevb.training.held_out import held_out_terms, judge
from aevb.training.latent_dim import compare, paired, search_feed
from aevb.training.weights import visits

RNG = np.random.default_rng(0)
KEY = jax.random.key(3)
WEIGHTS = {
    "counts": np.array([3.0, 0, 1, 2, 0, 1, 5]),
    "real": RNG.exponential(size=12),
    "equal": np.full(9, 0.1),
    "zero at both ends": np.array([0.0, 2, 1, 0]),
    "one large": np.array([1e-9, 1, 1e9, 1e-3]),
}


def expectation(weights, num_epochs, of=lambda counts: counts):
    """Return the exact expectation of a function of the visits of each row, over a start uniform in [0, 1)."""
    N = len(weights)
    # Between two neighbours of these, no point crosses the end of a row.
    jumps = np.unique(np.r_[0, num_epochs * np.cumsum(weights) / weights.sum() * N % 1, 1])
    starts, lengths = (jumps[1:] + jumps[:-1]) / 2, np.diff(jumps)
    counts = [np.bincount(visits(weights, start, num_epochs), minlength=N) for start in starts]
    return sum(length * of(count) for length, count in zip(lengths, counts, strict=True))


@pytest.mark.parametrize("num_epochs", [1, 3])
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_the_expected_visits_are_proportional_to_the_weights(weights, num_epochs):
    expected = num_epochs * len(weights) * weights / weights.sum()
    np.testing.assert_allclose(expectation(weights, num_epochs), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_visits_are_the_expectation_rounded_down_or_up(weights):
    N, share = len(weights), weights / weights.sum()
    for start in (0.0, 0.3, 0.77, np.nextafter(1, 0)):
        epochs = visits(weights, start, 4).reshape(4, N)
        for visited, expected in [*((epoch, N * share) for epoch in epochs), (epochs.ravel(), 4 * N * share)]:
            counts = np.bincount(visited, minlength=N)
            assert (abs(counts - expected) < 1 + 1e-9).all()
            assert (counts[weights == 0] == 0).all()


def test_points_that_are_rounded_up_stay_inside():
    weights = np.r_[np.ones(1_000_000), 0.0]
    assert visits(weights, np.nextafter(1, 0)).max() == 999_999


@pytest.mark.float64
def test_the_expected_gradient_is_that_of_repeated_rows():
    counts, x = WEIGHTS["counts"].astype(int), RNG.normal(size=(7, 4))
    models = initialize(standard_models(4, 2, (3,), "gaussian"), jax.random.key(0))
    parameters, constants, skeleton = split(models)
    noise = RNG.normal(size=(7, 1, 2))

    def bound(parameters, x, noise):
        return sgvb_b(*join(parameters, constants, skeleton), x, noise)

    gradients = jax.tree.leaves(jax.jit(jax.vmap(jax.grad(bound), (None, 0, 0)))(parameters, x, noise))
    for gradient in map(np.asarray, gradients):
        of_visits = expectation(counts.astype(float), 1, lambda visited: visited @ gradient.reshape(7, -1) / 7)  # noqa: B023
        of_repeated_rows = np.repeat(gradient.reshape(7, -1), counts, axis=0).mean(axis=0)
        np.testing.assert_allclose(of_visits, of_repeated_rows, rtol=1e-10, atol=1e-13)


def test_an_order_is_a_function_of_key_and_epoch_and_with_equal_weights_that_without():
    for repeats in (1, 4):
        plain = shuffle(KEY, 5, 9, repeats)
        np.testing.assert_array_equal(shuffle(KEY, 5, 9, repeats, np.full(9, 0.1)), plain)
    weights = WEIGHTS["real"]
    np.testing.assert_array_equal(shuffle(KEY, 2, 12, 1, weights), shuffle(KEY, 2, 12, 1, weights))
    assert not np.array_equal(shuffle(KEY, 2, 12, 1, weights), shuffle(KEY, 3, 12, 1, weights))


def test_a_feed_visits_its_training_rows_by_their_weights():
    weights = np.r_[np.zeros(5), 1.0, 2, 3, 4, 0]
    feed = Resident(Source(np.arange(10.0)[:, None]), np.arange(4, 10), 3, np.array([1, 2]), weights=weights)
    assert feed.num_rows == 6
    assert feed.num_data == 10
    (chunk,) = feed.chunks(KEY, 0)
    counts = np.bincount(np.asarray(chunk.rows)[np.asarray(chunk.order)], minlength=10)
    np.testing.assert_array_equal(counts[:5], 0)
    assert counts[9] == 0
    assert (abs(counts - 6 * weights / 10) < 1).all()


def test_weights_are_part_of_the_fingerprint_and_without_them_it_is_unchanged():
    rows, train, held_out = np.arange(8.0)[:, None], np.arange(6), np.array([6, 7])
    plain = Resident(Source(rows), train, 3, held_out)
    arrays, text = plain.source.described()
    assert plain.fingerprint == checksum([*arrays, train, held_out], f"{plain.plan} {text}")
    prints = {plain.fingerprint}
    for weights in (np.ones(8), np.r_[2.0, np.ones(7)]):
        prints.add(Resident(Source(rows), train, 3, held_out, weights=weights).fingerprint)
    own = {"validation_source": Source(rows[6:]), "weights": np.ones(8)}
    prints |= {
        Resident(Source(rows), train, 3, np.arange(2), **own, validation_weights=w).fingerprint for w in rows[:2]
    }
    assert len(prints) == 5


def test_the_held_out_bound_is_a_weighted_mean():
    models = initialize(standard_models(4, 2, (3,), "gaussian"), jax.random.key(0))
    learner = AEVB(split(models).skeleton, 10)
    state = learner.init(models, 0.1, KEY)
    weights, rows = RNG.exponential(size=10), RNG.normal(size=(10, 4)).astype(np.float32)
    held_out = Batches(Source(rows), np.arange(10), weights)
    found = judge(learner, held_out, KEY, state)
    terms = held_out_terms(learner, held_out, KEY, state)
    for name in ("lower_bound", "reconstruction", "kl_divergence"):
        np.testing.assert_allclose(found[f"validation_{name}"], np.average(getattr(terms, name), weights=weights))


def test_the_search_compares_weighted_means():
    one, other, weights = RNG.normal(size=40), RNG.normal(size=40), RNG.exponential(size=40)
    np.testing.assert_allclose(paired(one, other, np.full(40, 3.0)), paired(one, other))
    gain, std_error = paired(one, other, weights)
    np.testing.assert_allclose(gain, np.average(one - other, weights=weights))
    np.testing.assert_allclose(paired(one, other, 7 * weights), (gain, std_error))
    bad = np.r_[np.inf, other[1:]]
    np.testing.assert_allclose(paired(one, bad, weights), paired(one[1:], other[1:], weights[1:]))
    rows = compare({1: one, 2: other}, weights=weights).rows
    np.testing.assert_allclose(rows[0]["validation_lower_bound"], np.average(one, weights=weights))


def test_the_standard_error_of_a_weighted_mean_covers():
    """Two standard errors cover the truth in 93.3% of cases, measured; four standard deviations fail once in 15,000."""
    noise, weights = RNG.normal(size=(2000, 50)), RNG.exponential(size=(2000, 50))
    found = [paired(row, np.zeros(50), weight) for row, weight in zip(noise, weights, strict=True)]
    covered = np.mean([abs(gain) < 2 * std_error for gain, std_error in found])
    assert abs(covered - 0.933) < 4 * 0.0056


def test_the_search_keeps_the_weights_of_its_rows():
    weights = RNG.exponential(size=10)
    feed = Resident(Source(np.arange(10.0)[:, None]), np.arange(8), 2, np.array([8, 9]), weights=weights)
    found = search_feed(feed, 2, KEY)
    np.testing.assert_array_equal(found.first().weights, weights[:8])
    np.testing.assert_array_equal(found.held_out.weights, weights[8:])
