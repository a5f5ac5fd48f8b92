"""How rows of files are divided among processes; other processes are played by the test."""

import jax
import numpy as np
import pytest

from aevb.data import lanes as limits
from aevb.data.file_feed import FileFeed
from aevb.data.lanes import lanes_for, say_shares
from aevb.data.table import Table, array_table
from aevb.data.tables import open_tables
from aevb.parallel import ALONE

NUMBERS = np.arange(5_003, dtype=np.float32)[:, None]
NONE = np.zeros(0, int)
KEY = jax.random.key(0)


class OneOf:
    """One of several processes, with one device each."""

    mesh, is_first = None, True

    def __init__(self, num_processes, process_id):
        self.num_processes, self.process_id = num_processes, process_id

    def owners(self, num_places):
        return np.repeat(np.arange(self.num_processes), -(-num_places // self.num_processes))


@pytest.fixture
def play(monkeypatch):
    """A function that lets this process be one of several."""
    return lambda *which: monkeypatch.setattr(limits, "group", lambda: OneOf(*which) if which else ALONE)


def counted(tables, read):
    """Return tables that add the rows that are read to a list."""

    def counting(table):
        def read_rows(start, stop, size):
            for rows in table.read(start, stop, size):
                read.extend(rows[:, 0].astype(int))
                yield rows

        return table._replace(read=read_rows)

    return [counting(table) for table in tables]


@pytest.mark.parametrize("batch_size", [50, 47, 3])
@pytest.mark.parametrize("num_processes", [2, 3, 4])
def test_processes_fill_their_own_places_of_the_same_minibatches(tmp_path, play, batch_size, num_processes):
    for number, rows in enumerate(np.split(NUMBERS, [7, 2000])):
        np.save(tmp_path / f"{number}.npy", rows)
    tables, held_out = open_tables(tmp_path), np.arange(5, 5_003, 50)
    lanes = lanes_for(tables, batch_size, held_out)
    rows = FileFeed(tables, 1.0, lanes, held_out, None)
    (whole, _), *_ = rows._arranged(KEY, 1)
    read = []
    for process in range(num_processes):
        play(num_processes, process)
        places, mine = lanes.my_places(), []
        feed = FileFeed(counted(tables, mine), 1.0, lanes, held_out, None)
        (part, numbers), *_ = feed._arranged(KEY, 1)
        np.testing.assert_array_equal(part, whole[:, places])
        np.testing.assert_array_equal(part[..., 0], numbers)
        assert len(set(mine)) <= lanes.share(process) * len(NUMBERS) + 1
        assert lanes.share(process) <= 1 / num_processes + 2 / min(batch_size, 64)
        read.append(set(mine))
    assert set.union(*read) >= set(whole.ravel().astype(int))


def test_no_row_is_left_out_in_every_epoch(tmp_path):
    np.save(tmp_path / "x.npy", NUMBERS)
    tables = open_tables(tmp_path)
    feed = FileFeed(tables, 1.0, lanes_for(tables, 50, NONE), NONE, None)
    epochs = [np.concatenate([rows.ravel() for rows, _ in feed._arranged(KEY, epoch)]) for epoch in range(5)]
    assert min(map(len, epochs)) >= 0.95 * len(NUMBERS)
    assert all(len(set(epoch)) == len(epoch) for epoch in epochs)
    assert set.union(*map(set, epochs)) == set(NUMBERS.ravel())


def whole_files(*sizes):
    return [array_table(str(place), np.zeros((size, 1))) for place, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("tables", "count"),
    [
        (whole_files(*[100] * 64), 64),
        (whole_files(*[100] * 8), 8),  # more would cut files
        (whole_files(*[100] * 3), 1),  # two would read the second file twice
        (whole_files(800), 1),
        ([Table("any", 800, 1, np.dtype(float), lambda *_: iter(()))], 64),
    ],
)
def test_lanes_do_not_read_files_twice(tables, count):
    assert len(lanes_for(tables, 64, NONE).rows) - 1 == count


def test_uneven_shares_are_said(play, recwarn):
    play(4, 0)
    say_shares(lanes_for(whole_files(*[100] * 8), 64, NONE))
    assert not recwarn
    with pytest.warns(UserWarning, match="divided into 1 parts, so that each of 4 processes reads up to 100% of the"):
        say_shares(lanes_for(whole_files(*[100] * 3), 64, NONE))
