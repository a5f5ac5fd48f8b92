"""Data larger than memory: chunks of rows from random places in the files, read ahead in a thread.

How random is it? The rows are divided into up to 64 lanes, see :mod:`aevb.data.lanes`, and these into pieces: up to
256 KiB of a `.npy` file, row groups of Parquet, whole `.npz` files. Each epoch visits the pieces of each lane in a new
random order, and each lane's part of a chunk of steps is fully shuffled. A minibatch therefore mixes rows from at least
32 random pieces (fewer only if that many do not fit into memory or do not exist), the same number from each part of the
data. Rows that are neighbours in a file are in the same chunk, but rarely in the same minibatch. The order is a
function of the run's key and the epoch.

Each process reads the lanes of its own places in the minibatches.

Paper: §2.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

import jax
import numpy as np
from jax import Array

from aevb.arrays import checksum
from aevb.data import lanes as limits
from aevb.data.chunks import max_steps, regroup
from aevb.data.lanes import Lanes
from aevb.data.scan import rows_in
from aevb.data.tables import Table
from aevb.models import Conversion, Numbers
from aevb.parallel import group
from aevb.training import Chunk, ChunkPlan, Source, read_ahead
from aevb.training.divided import divided, gathered
from aevb.training.feed import RowNames, generator, ordered_chunk
from aevb.training.source import Rows

PIECE_BYTES = 2**18  # of a file that can be split anywhere: large enough to be read at full speed
MAX_OPEN = 32  # pieces that a chunk mixes, over all lanes

T = TypeVar("T")


class Piece(NamedTuple):
    """Consecutive rows of a file."""

    table: Table
    start: int
    stop: int
    number: int  # index of its first row, counted over all tables


@dataclass(frozen=True)
class FileFeed:
    """Chunks of rows from tables.

    Args:
        tables: The data.
        scale: Factor for stored numbers.
        lanes: How they are divided.
        other_rows: Indices of the rows that are not used in training, counted over all tables, ascending.
        held_out: Those of them that are used to detect convergence, if there are any.
        checksum: Checksum of all rows, see :class:`aevb.data.scan.Scan`.
    """

    tables: list[Table]
    scale: float
    lanes: Lanes
    other_rows: np.ndarray
    held_out: Rows | None
    checksum: int = 0
    end = "max_epochs"

    @property
    def num_rows(self) -> int:
        """Training rows, without the other ones."""
        return sum(table.num_rows for table in self.tables) - len(self.other_rows)

    @property
    def num_data(self) -> int:
        """N."""
        return self.num_rows

    @cached_property
    def plan(self) -> ChunkPlan:
        """How an epoch is split into chunks."""
        M = self.lanes.batch_size
        return ChunkPlan.of_steps(self.lanes.num_steps, M, max_steps(row_bytes(self.tables[0]), M))

    def samples(self, max_epochs: int) -> int:
        """Return the maximum number of samples in a run."""
        return max_epochs * self.plan.samples_per_epoch

    def first(self) -> Rows:
        """Return the rows of a random chunk, those of all processes."""
        return self._first

    @cached_property  # processes exchange it, which they can do before training only
    def _first(self):
        rows, _ = next(self._arranged(jax.random.key(0), 0))
        rows = gathered(rows, self.lanes.batch_size)
        return Rows(self._source(rows), np.arange(len(rows)))

    @property
    def fingerprint(self) -> str:
        """A checksum of the data: their shape, all rows, and which of them are used in which batches."""
        tables = [(Path(table.name).name, table.num_rows, table.num_columns, str(table.dtype)) for table in self.tables]
        held_out = [] if self.held_out is None else jax.tree.leaves(self.held_out.source.rows)
        arrays = [self.lanes.rows, self.other_rows, *held_out]
        return checksum(arrays, f"{tables} {self.checksum} {self.scale} {self.plan}")

    def segments(self, key: Array, max_epochs: int, first: int = 0) -> Generator[tuple[int, Iterator[Chunk]]]:
        """Yield the epochs."""
        for epoch in self.plan.epochs(first, max_epochs):
            with closing(read_ahead(self._chunks(key, epoch))) as chunks:
                yield epoch + 1, chunks

    def _chunks(self, key, epoch):
        plan = replace(self.plan, num_chunks=1)  # each chunk has its own data
        of = "the data" if len(self.tables) == 1 else f"the data, counted over all {len(self.tables)} files"
        is_one = group().mesh is None
        for number, (rows, numbers) in zip(self.plan.chunks_of(epoch), self._arranged(key, epoch), strict=True):
            names = RowNames(numbers.reshape(-1) if is_one else numbers, of)
            yield ordered_chunk(number, plan, self._source(divided(rows, plan.batch_size)), names)

    def _source(self, rows):
        return Source(rows, Conversion(Numbers(self.scale)))

    def _arranged(self, key, epoch):
        """Yield the rows of an epoch's chunks, (steps, m, D), and their indices (steps, m): those of my m places."""
        places = self.lanes.my_places()
        mine, columns = np.unique(places, return_inverse=True)
        steps, size = self.plan.num_steps, self.plan.num_steps * len(mine)
        lanes = self.lanes.of_places(mine)
        readers = [regroup(self._slices(lane, key, epoch), steps * self._width(lane)) for lane in lanes]
        for number in self.plan.chunks_of(epoch):
            filled = ()
            for lane, reader in zip(lanes, readers, strict=True):
                parts = next(reader)
                filled = filled or tuple(np.empty((size, *part.shape[1:]), part.dtype) for part in parts)
                target, chosen = self._targets(lane, mine, generator(key, number, 2, lane))
                for whole, part in zip(filled, parts, strict=True):
                    whole[target] = part[chosen]
            filled = tuple(array.reshape(steps, len(mine), *array.shape[1:]) for array in filled)
            yield filled if len(mine) == len(places) else tuple(array[:, columns] for array in filled)

    def _targets(self, lane, mine, random):
        """Return where a lane's rows of a chunk go, in random order, and which of them: those of my places."""
        step, place = np.divmod(random.permutation(self.plan.num_steps * self._width(lane)), self._width(lane))
        place += self.lanes.places[lane]
        column = np.minimum(np.searchsorted(mine, place), len(mine) - 1)
        is_mine, target = mine[column] == place, step * len(mine) + column
        return (target, slice(None)) if is_mine.all() else (target[is_mine], is_mine)

    def _width(self, lane):
        """Return how many places of a minibatch a lane has."""
        return int(self.lanes.places[lane + 1] - self.lanes.places[lane])

    def _slices(self, lane, key, epoch):
        """Yield a lane's rows of an epoch and their indices, a few at a time, without the other rows."""
        num_lanes = len(self.lanes.places) - 1
        num_open = -(-MAX_OPEN // num_lanes)
        size = max(self.plan.num_steps * self._width(lane) // num_open, 1)
        pieces = self._pieces(lane, size)

        def read(piece):
            number = piece.number
            for rows in piece.table.read(piece.start, piece.stop, size):
                others, numbers = rows_in(self.other_rows, number, len(rows)), np.arange(number, number + len(rows))
                number += len(rows)
                yield (np.delete(rows, others, axis=0), np.delete(numbers, others)) if len(others) else (rows, numbers)

        largest = max((piece.stop - piece.start) * row_bytes(piece.table) for piece in pieces)
        num_open = min(max(limits.OPEN_BYTES // (largest * num_lanes), 2 // num_lanes, 1), num_open)
        order = generator(key, epoch, 1, lane).permutation(len(pieces))  # the 1 distinguishes it from the chunks' order
        return in_turns((pieces[number] for number in order), read, num_open)

    def _pieces(self, lane, size):
        pieces, number = [], int(self.lanes.rows[lane])
        for table in self.lanes.tables(self.tables, lane):
            step = max(min(PIECE_BYTES // row_bytes(table), size), 1)
            cuts = table.cuts or (*range(0, table.num_rows, step), table.num_rows)
            pieces += [Piece(table, start, stop, number + start) for start, stop in pairwise(cuts)]
            number += table.num_rows
        return pieces


def row_bytes(table: Table) -> int:
    """Return the size of a row in bytes."""
    return table.num_columns * table.dtype.itemsize


def in_turns(pieces: Iterable[Piece], read: Callable[[Piece], Iterator[T]], num_open: int) -> Iterator[T]:
    """Read several pieces in turn, a few rows at a time; when one ends, the next one starts."""
    waiting = map(read, pieces)
    reading = deque(islice(waiting, num_open))
    while reading:
        rows = next(reading[0], None)
        if rows is None:
            reading.popleft()
            reading.extend(islice(waiting, 1))
        else:
            yield rows
            reading.rotate(-1)
