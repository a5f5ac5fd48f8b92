import jax
import numpy as np
import pytest

from aevb.training import Source
from aevb.training.buckets import Bucket, Bucketed, buckets_of, padded_length, training_buckets

LENGTHS = np.random.default_rng(0).integers(1, 200, 300)


@pytest.mark.thorough
def test_padded_lengths_are_few_and_near():
    found = [padded_length(length) for length in range(1, 2000)]

    assert len(set(found)) < 20
    assert all(length <= padded < max(1.5 * length, 8.1) for length, padded in enumerate(found, 1))


@pytest.mark.thorough
@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_every_sequence_is_in_one_bucket_that_is_long_enough(most):
    found = training_buckets(LENGTHS, smallest=20, most=most)

    assert 1 <= len(found) <= most
    assert sorted(np.concatenate([numbers for _, numbers in found])) == list(range(300))
    assert all(len(numbers) >= 20 and LENGTHS[numbers].max() == length for length, numbers in found)


@pytest.mark.thorough
def test_more_buckets_pad_less():
    padded = [
        sum(edge * len(numbers) for edge, numbers in training_buckets(LENGTHS, 20, most)) for most in (1, 2, 3, 4)
    ]

    assert (np.diff(padded) < 0).all()
    # For lengths that are uniform from 0 to L, k equal buckets pad to 1 + 1/k times the steps.
    np.testing.assert_allclose(padded / LENGTHS.sum(), [2, 3 / 2, 4 / 3, 5 / 4], rtol=0.06)


def feed(**options):
    buckets = [Bucket(Source(np.zeros((len(numbers), 2))), numbers) for _, numbers in buckets_of(LENGTHS)[-3:]]
    return Bucketed(buckets, 10, **options)


@pytest.mark.thorough
def test_a_resumed_feed_continues_with_the_same_chunks():
    key = jax.random.key(0)

    def chunks(first=0):
        return {
            chunk.number: (chunk.plan, np.asarray(chunk.order).tolist(), chunk.names.numbers.tolist())
            for _, some in feed(epochs_per_row=3).segments(key, 9, first)
            for chunk in some
        }

    whole, rest = chunks(), chunks(first=20)

    assert sorted(whole) == list(range(len(whole)))
    assert {number: whole[number] for number in rest} == rest
    assert {number for number in whole if number >= 20} <= set(rest)


@pytest.mark.thorough
def test_each_sequence_is_visited_equally_often():
    data = feed(epochs_per_row=10)
    visits = np.zeros(300, int)
    for _, chunks in data.segments(jax.random.key(0), 40):
        for chunk in chunks:
            np.add.at(visits, chunk.names.numbers[np.asarray(chunk.order)], 1)

    seen = np.concatenate([bucket.numbers for bucket in data.buckets])
    assert visits[seen].sum() == data.samples(40) == visits.sum()
    assert np.ptp(visits[seen]) <= 8  # the few that are left over in a row of the history
    assert visits[seen].min() >= 32
