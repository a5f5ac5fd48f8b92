"""Data larger than memory: chunks of rows from random places in the files, read ahead in a thread.

How random is it? The files are split into pieces: up to 256 KiB of a `.npy` file, row groups of Parquet, whole `.npz`
files. Each epoch visits all pieces in a new random order, up to 32 of them in turn, and each chunk of steps is fully
shuffled. A minibatch therefore mixes rows from at least 32 random pieces (fewer only if that many do not fit into
memory or do not exist). Rows that are neighbours in a file are in the same chunk, but rarely in the same minibatch.
The order is a function of the run's key and the epoch.

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
from aevb.data.chunks import max_steps, regroup
from aevb.data.scan import rows_in
from aevb.data.tables import Table
from aevb.models import Conversion, Numbers
from aevb.training import Chunk, ChunkPlan, Source, read_ahead
from aevb.training.feed import RowNames, generator, streamed_chunk
from aevb.training.source import Rows

PIECE_BYTES = 2**18  # of a file that can be split anywhere: large enough to be read at full speed
MAX_OPEN = 32  # pieces that a chunk mixes
OPEN_BYTES = 2**28  # of pieces that can only be read as a whole

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
        batch_size: M.
        other_rows: Indices of the rows that are not used in training, counted over all tables, ascending.
        held_out: Those of them that are used to detect convergence, if there are any.
        checksum: Checksum of all rows, see :class:`aevb.data.scan.Scan`.
    """

    tables: list[Table]
    scale: float
    batch_size: int
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
        return ChunkPlan.of(self.num_rows, self.batch_size, max_steps(row_bytes(self.tables[0]), self.batch_size))

    def samples(self, max_epochs: int) -> int:
        """Return the maximum number of samples in a run."""
        return max_epochs * self.plan.samples_per_epoch

    def first(self) -> Rows:
        """Return the rows of a random chunk."""
        rows, _ = next(regroup(self._slices(jax.random.key(0), 0), self.plan.samples_per_chunk))
        return Rows(self._source(rows), np.arange(len(rows)))

    @property
    def fingerprint(self) -> str:
        """A checksum of the data: their shape, all rows, and which of them are used in which batches."""
        tables = [(Path(table.name).name, table.num_rows, table.num_columns, str(table.dtype)) for table in self.tables]
        held_out = [] if self.held_out is None else jax.tree.leaves(self.held_out.source.rows)
        return checksum([self.other_rows, *held_out], f"{tables} {self.checksum} {self.scale} {self.plan}")

    def segments(self, key: Array, max_epochs: int, first: int = 0) -> Generator[tuple[int, Iterator[Chunk]]]:
        """Yield the epochs."""
        for epoch in self.plan.epochs(first, max_epochs):
            with closing(read_ahead(self._chunks(key, epoch))) as chunks:
                yield epoch + 1, chunks

    def _chunks(self, key, epoch):
        plan = replace(self.plan, num_chunks=1)  # each chunk has its own data
        chunks = regroup(self._slices(key, epoch), plan.samples_per_chunk)
        of = "the data" if len(self.tables) == 1 else f"the data, counted over all {len(self.tables)} files"
        for number, (rows, row_numbers) in zip(self.plan.chunks_of(epoch), chunks, strict=False):
            yield streamed_chunk(number, plan, self._source(rows), RowNames(row_numbers, of), key)

    def _source(self, rows):
        return Source(rows, Conversion(Numbers(self.scale)))

    def _slices(self, key, epoch):
        """Yield the epoch's rows and their indices, a few at a time, without the held-out rows."""
        size = max(self.plan.samples_per_chunk // MAX_OPEN, 1)
        pieces = self._pieces(size)

        def read(piece):
            number = piece.number
            for rows in piece.table.read(piece.start, piece.stop, size):
                others, numbers = rows_in(self.other_rows, number, len(rows)), np.arange(number, number + len(rows))
                yield np.delete(rows, others, axis=0), np.delete(numbers, others)
                number += len(rows)

        largest = max((piece.stop - piece.start) * row_bytes(piece.table) for piece in pieces)
        num_open = min(max(OPEN_BYTES // largest, 2), MAX_OPEN)
        order = generator(key, epoch, 1).permutation(len(pieces))  # the 1 distinguishes it from the shuffling of chunks
        return in_turns((pieces[number] for number in order), read, num_open)

    def _pieces(self, size):
        pieces, number = [], 0
        for table in self.tables:
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
