"""Rows of files in lanes: how they are divided among processes, in the same way for any number of them.

A minibatch has M places. Each lane has some consecutive places, and in the same proportion consecutive rows of the
data, which fill these places in every step. Lanes are a function of the data and the settings. A process computes some
places of each minibatch, and reads the lanes of these places only: so any number of processes learns from the same
minibatches. A lane that belongs to two processes is read by both, and so is a file that two lanes cut, if it cannot be
read in parts.
"""

import warnings
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from aevb.data.table import Table, rows_between
from aevb.parallel import group
from aevb.training import ChunkPlan

MOST = 64  # lanes
OPEN_BYTES = 2**28  # of pieces that can only be read as a whole, over all lanes
MAX_REPEATED = 0.1  # share of the rows that are read twice, because they are in pieces that two lanes need
MAX_LOST = 0.05  # share of the steps of an epoch, because lanes have different numbers of training rows

MAX_UNEVEN = 1.5  # times an even share of the rows that a process reads without a warning


class Lanes(NamedTuple):
    """How rows are divided."""

    places: np.ndarray  # (L + 1,), the first place of each lane in a minibatch, and M
    rows: np.ndarray  # (L + 1,), the first row of each lane, counted over all tables, and N
    num_steps: int  # of an epoch: the lane with the fewest rows determines it

    @property
    def batch_size(self) -> int:
        """M."""
        return int(self.places[-1])

    @property
    def owners(self) -> list[int]:
        """The process that reads a lane when each is read once: that of its first place."""
        return [int(owner) for owner in group().owners(self.batch_size)[self.places[:-1]]]

    def my_places(self) -> np.ndarray:
        """Return the places of this process; where there are more of them than M, the last one is repeated."""
        members = group()
        mine = np.flatnonzero(members.owners(self.batch_size) == members.process_id)
        return np.minimum(mine, self.batch_size - 1)

    def of_places(self, places: np.ndarray) -> list[int]:
        """Return the lanes of some places."""
        return sorted({int(lane) for lane in np.searchsorted(self.places, places, side="right") - 1})

    def tables(self, tables: list[Table], lane: int) -> list[Table]:
        """Return the rows of a lane."""
        return rows_between(tables, int(self.rows[lane]), int(self.rows[lane + 1]))

    def share(self, process: int) -> float:
        """Return the share of the rows that a process reads."""
        mine = np.minimum(np.flatnonzero(group().owners(self.batch_size) == process), self.batch_size - 1)
        return float(np.diff(self.rows)[self.of_places(mine)].sum() / self.rows[-1])


def lanes_for(tables: list[Table], batch_size: int, other_rows: np.ndarray) -> Lanes:
    """Return as many lanes as possible, up to 64: reading and memory limit them, see the constants above.

    Args:
        tables: The data.
        batch_size: M, or more than there are rows.
        other_rows: Indices of the rows that are not used in training, counted over all tables, ascending.
    """
    num_rows = sum(table.num_rows for table in tables)
    M = ChunkPlan.of(num_rows - len(other_rows), batch_size).batch_size
    cuts, largest = _cuts(tables)
    found = alone = _divided(1, M, num_rows, other_rows)
    for count in (2**power for power in range(1, MOST.bit_length())):
        if count > M or (count > 2 and count * largest > OPEN_BYTES):
            break
        lanes = _divided(count, M, num_rows, other_rows)
        if lanes.num_steps >= (1 - MAX_LOST) * alone.num_steps and _repeated(lanes, cuts) <= MAX_REPEATED * num_rows:
            found = lanes
    return found


def say_shares(lanes: Lanes) -> None:
    """Warn if a process reads much more than an even share of the rows."""
    k = group().num_processes
    most = max(lanes.share(process) for process in range(k))
    if most > MAX_UNEVEN / k:
        warnings.warn(
            f"The data are divided into {len(lanes.places) - 1} parts, so that each of {k} processes reads up to "
            f"{most:.0%} of the rows. For more parts, write more and smaller row groups of Parquet, or .npy files, or "
            "use larger minibatches.",
            stacklevel=2,
        )


def _divided(count, M, num_rows, other_rows):
    places = M * np.arange(count + 1) // count
    rows = num_rows * places // M
    used = np.diff(rows) - np.diff(np.searchsorted(other_rows, rows))
    return Lanes(places, rows, int((used // np.diff(places)).min()))


def _cuts(tables):
    """Return the rows at which pieces that are read as a whole begin and end, and the bytes of the largest."""
    starts = accumulate((table.num_rows for table in tables), initial=0)
    pieces = [
        (start + np.array(table.cuts), np.diff(table.cuts).max() * table.num_columns * table.dtype.itemsize)
        for start, table in zip(starts, tables, strict=False)
        if table.cuts is not None
    ]
    return [cuts for cuts, _ in pieces], max((int(size) for _, size in pieces), default=0)


def _repeated(lanes, cuts):
    """Return how many rows are read again, because lanes begin inside of a piece."""
    repeated = 0
    for edges in cuts:
        inside = lanes.rows[(lanes.rows > edges[0]) & (lanes.rows < edges[-1])]
        place = np.searchsorted(edges, inside, side="right") - 1
        repeated += (np.diff(edges)[place] * (edges[place] != inside)).sum()
    return repeated
