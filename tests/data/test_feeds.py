"""Which rows are read when: each row contains its own index here, and nothing is compiled."""

import threading
import time
from functools import partial
from itertools import pairwise, repeat

import jax
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from aevb.data import file_feed
from aevb.data.batch_feed import BatchFeed
from aevb.data.file_feed import FileFeed
from aevb.data.lanes import lanes_for
from aevb.data.tables import open_tables
from aevb.training import read_ahead
from aevb.training.reading_ahead import FeedError

NUMBERS = np.arange(10_000, dtype=np.float32)[:, None]
KEY = jax.random.key(0)


@pytest.fixture(params=["npy", "parquet", "npz folder"])
def tables(request, tmp_path, monkeypatch):
    monkeypatch.setattr(file_feed, "PIECE_BYTES", 4 * 20)
    if request.param == "npy":
        np.save(tmp_path / "x.npy", NUMBERS)
    elif request.param == "parquet":
        table = pyarrow.table({"n": NUMBERS[:, 0]})
        pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=100)
    else:
        for number, rows in enumerate(np.split(NUMBERS, 100)):
            np.savez(tmp_path / f"{number:03}.npz", rows)
    return open_tables(tmp_path)


def feed_of(tables, held_out=(), batch_size=50):
    held_out = np.asarray(held_out, int)
    return FileFeed(tables, 1.0, lanes_for(tables, batch_size, held_out), held_out, None)


def epochs(feed, max_epochs, key=KEY):
    """Return the row indices of each chunk of each epoch, in the order in which steps see them."""
    return [
        [np.asarray(chunk.source.rows)[np.asarray(chunk.order), 0].astype(int) for chunk in chunks]
        for _, chunks in feed.segments(key, max_epochs)
    ]


def test_chunks_know_the_numbers_of_their_rows(tables):
    for feed in (feed_of(tables, np.arange(3, 10_000, 1000)), batch_feed(batches(7, 2000, 1, 493))):
        for _, chunks in feed.segments(KEY, 1):
            for chunk in chunks:
                rows = np.asarray(chunk.source.rows)[:, 0]
                np.testing.assert_array_equal(chunk.names.numbers[: len(rows)], rows)


def test_each_epoch_reads_each_row_once_in_its_own_order(tables, monkeypatch):
    monkeypatch.setattr("aevb.training.feed.MAX_CHUNK_STEPS", 40)
    held_out = np.arange(3, 10_000, 1000)
    feed = feed_of(tables, held_out)
    assert feed.num_rows == 9990
    first, second = epochs(feed, 2)
    assert [len(chunk) for chunk in first] == [len(chunk) for chunk in second] == [feed.plan.samples_per_chunk] * 5
    for epoch in (first, second):
        rows = np.concatenate(epoch)
        assert len(set(rows)) == len(rows) > 9990 - 50 * (5 + 1)
        assert not set(rows) & set(held_out)
    assert (np.concatenate(first) != np.concatenate(second)).mean() > 0.99
    again, other = epochs(feed, 1)[0], epochs(feed, 1, jax.random.key(1))[0]
    np.testing.assert_array_equal(again, first)
    assert (np.concatenate(other) != np.concatenate(first)).mean() > 0.99


def test_minibatches_mix_rows_from_everywhere(tables, monkeypatch):
    """The average of 50 rows drawn at random from 10,000 has a standard deviation of 408.

    The data are sorted: in order, minibatches would have one of 2887. Lanes, the same number of rows from each part of
    the data, make it smaller.
    """
    monkeypatch.setattr("aevb.training.feed.MAX_CHUNK_STEPS", 20)
    feed = feed_of(tables)
    chunks = epochs(feed, 1)[0]
    means = np.concatenate([chunk.reshape(-1, feed.plan.batch_size).mean(axis=1) for chunk in chunks])
    assert means.std() < 408
    assert all(len(set(chunk // 100)) >= 20 for chunk in chunks)


def test_few_large_pieces_are_open_at_a_time(tables, monkeypatch):
    monkeypatch.setattr("aevb.data.lanes.OPEN_BYTES", 0)
    monkeypatch.setattr("aevb.training.feed.MAX_CHUNK_STEPS", 2)
    ((chunk, *_),) = epochs(feed_of(tables), 1)
    if tables[0].cuts is not None:
        assert len(set(chunk // 100)) == 2


# ---- batches ---------------------------------------------------------------------------------------------------------


def batches(*sizes, columns=1):
    rows = NUMBERS.repeat(columns, axis=1)
    return iter(np.split(rows[: sum(sizes)], np.cumsum(sizes)[:-1]))


def batch_feed(X, batch_size=10):
    return BatchFeed(X, lambda batch, is_first: np.asarray(batch), batch_size)


@pytest.mark.parametrize("sizes", [(130,) * 20, (7, 2000, 1, 493), (2500,), (9, 20)])
def test_batches_of_any_size_become_chunks_in_order(sizes):
    feed = batch_feed(batches(*sizes))
    (chunks,) = epochs(feed, 5)  # an iterator is used once
    rows, total = np.concatenate(chunks), sum(sizes)
    assert total - 10 < len(rows) <= total
    assert len(set(rows)) == len(rows)
    assert all(max(one) < min(other) for one, other in pairwise(chunks))
    assert all(len(chunk) == 500 for chunk in chunks[:-1])
    assert feed.end == "end_of_data"
    assert total < 500 or (chunks[0] != np.sort(chunks[0])).any()


def test_functions_and_iterables_are_passed_again():
    class Loader:
        def __iter__(self):
            return batches(300, 300)

    for X in (Loader(), lambda: batches(300, 300)):
        feed = batch_feed(X)
        passes = epochs(feed, 3)
        assert [[len(chunk) for chunk in chunks] for chunks in passes] == [[500, 100]] * 3
        assert feed.end == "max_epochs"


def test_a_long_pass_has_several_rows_of_history():
    segments = epochs(batch_feed((NUMBERS[:1000] for _ in range(30)), 10), 1)
    assert [len(chunks) for chunks in segments] == [20, 20, 20]


def wrong(feed):
    try:
        epochs(feed, 2)
    except FeedError as error:
        raise error.cause from None


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (lambda: iter(()), "X gave no batches in pass 1"),
        (lambda: 3, r"X\(\) returned int; a function must return an iterator"),
        (partial(next, repeat(batches(700))), "X gave no batches in pass 2.*start over"),
        (iter([NUMBERS[:600], NUMBERS[:5].astype(float)]), r"batch 1 \(from 0\), pass 1: its dtype is float64"),
        (
            partial(next, iter([iter([NUMBERS[:600].astype(np.uint8)]), batches(600)])),
            r"batch 0 \(from 0\), pass 2: its dtype is float32, but that of batch 0 of pass 1 is uint8. Use one",
        ),
    ],
)
def test_batches_that_cannot_be_used(X, words):
    with pytest.raises(ValueError, match=words):
        wrong(batch_feed(X))


# ---- reading ahead ---------------------------------------------------------------------------------------------------


def test_reading_stays_a_little_ahead_and_stops_when_closed():
    made = []

    def endless():
        while True:
            made.append(1)
            yield len(made)

    items = read_ahead(endless())
    assert [next(items), next(items)] == [1, 2]
    while len(made) < 5:
        time.sleep(0.01)
    time.sleep(0.05)  # time in which it could read too far
    assert len(made) == 5  # two taken, two waiting, one in hand
    items.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "aevb-read-ahead"]


def test_errors_of_the_data_are_distinguished():
    def fails():
        yield 1
        raise OSError("unplugged")

    items = read_ahead(fails())
    assert next(items) == 1
    with pytest.raises(FeedError, match="unplugged") as error:
        next(items)
    assert isinstance(error.value.cause, OSError)
