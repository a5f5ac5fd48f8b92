"""Feeds provide the chunks of a run: rows on the device, or rows read ahead in a thread.

A feed decides which rows each chunk contains and in which order they are visited, as a function of the run's key and
the chunk's number. The loop needs nothing else, and one compiled program serves all feeds.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from jax import Array

from aevb.arrays import checksum, num_rows, on_device
from aevb.training.divided import gathered
from aevb.training.source import Rows, Source
from aevb.training.weights import visits

MAX_CHUNK_STEPS = 250  # about a second with the paper's network: short enough to feel responsive


@dataclass(frozen=True)
class ChunkPlan:
    """How an epoch is split into chunks of equal length, so that one compiled program serves them all."""

    batch_size: int
    num_steps: int  # per chunk
    num_chunks: int  # per epoch

    @classmethod
    def of(cls, num_rows: int, batch_size: int, max_steps: int | None = None) -> "ChunkPlan":
        """Return the plan for this many rows, with at most `max_steps` steps per chunk."""
        steps = max(num_rows // batch_size, 1)
        left_over = num_rows - steps * batch_size
        # Use smaller batches instead of leaving many rows unread, unless that leaves more: of 11 rows, 6 steps read 6.
        if left_over > num_rows / 20 and num_rows % (steps + 1) < left_over:
            steps += 1
        # The few rows left over are not used in this epoch; each epoch leaves out different ones.
        return cls.of_steps(steps, min(batch_size, num_rows // steps), max_steps)

    @classmethod
    def of_steps(cls, num_steps: int, batch_size: int, max_steps: int | None = None) -> "ChunkPlan":
        """Return the plan for this many steps in an epoch."""
        most = max_steps or MAX_CHUNK_STEPS
        num_chunks = -(-num_steps // most)
        steps = num_steps // num_chunks
        # If chunks are short because rows are large, rounding could leave many rows unread: 127 steps, 16 chunks of 7.
        if num_steps - steps * num_chunks > num_steps / 20:
            steps = max(range((most + 1) // 2, most + 1), key=lambda some: (num_steps // some * some, some))
            num_chunks = num_steps // steps
        return cls(batch_size, steps, num_chunks)

    def chunks_of(self, epoch: int) -> range:
        """Return the numbers of an epoch's chunks, counted from the start of the run."""
        return range(epoch * self.num_chunks, (epoch + 1) * self.num_chunks)

    def epochs(self, first: int, max_epochs: int) -> range:
        """Return the epochs (from 0), starting with the one that contains the chunk before `first`."""
        return range(max(first - 1, 0) // self.num_chunks, max_epochs)

    @property
    def samples_per_chunk(self) -> int:
        """Rows that a chunk reads."""
        return self.batch_size * self.num_steps

    @property
    def samples_per_epoch(self) -> int:
        """Rows that an epoch reads."""
        return self.samples_per_chunk * self.num_chunks


class RowNames(NamedTuple):
    """How the rows of a chunk's source are named in messages."""

    numbers: np.ndarray | None = None  # from 0; None: as in the source
    of: str = "the data"  # empty: a step reads all data, so no rows are named

    def of_all(self, batch_size: int) -> "RowNames":
        """Return the numbers of all processes' rows, if these are (steps, m): those of one of several processes."""
        if self.numbers is None or self.numbers.ndim == 1:
            return self
        return self._replace(numbers=gathered(self.numbers, batch_size))


ROWS_OF_THE_DATA = RowNames()


class Chunk(NamedTuple):
    """The data of one compiled call."""

    number: int  # from the start of the run; the noise is a function of it
    plan: ChunkPlan
    source: Source
    rows: Array  # indices of the training rows in the source
    order: Array  # the order in which they are visited, as indices of `rows`
    names: RowNames = ROWS_OF_THE_DATA  # not visible to compiled programs


class Feed(Protocol):
    """What the training loop needs from data."""

    @property
    def num_rows(self) -> int | None:
        """Training rows; None if unknown."""
        ...

    @property
    def num_data(self) -> float | None:
        """N, the number of datapoints that the training rows stand for; None if unknown."""
        ...

    @property
    def held_out(self) -> Any:
        """The rows that decide convergence: :class:`Rows`, or several batches of them; None for none."""
        ...

    @property
    def end(self) -> str:
        """The reason for stopping when the data or epochs are used up."""
        ...

    @property
    def fingerprint(self) -> str | None:
        """A checksum that identifies the data; None if they cannot be read again."""
        ...

    def samples(self, max_epochs: int) -> int | None:
        """Return the maximum number of samples in a run; None if unknown."""
        ...

    def first(self) -> Rows:
        """Return rows for choosing a start and a step size."""
        ...

    def segments(self, key: Array, max_epochs: int, first: int = 0) -> Generator[tuple[int, Iterator[Chunk]]]:
        """Yield the segments of a run, one per row of the history: its epoch (from 1) and its chunks.

        Each has at least one chunk. A run resumed at the chunk `first` skips the segments before the one that this
        chunk is in or follows.
        """
        ...


@dataclass(frozen=True)
class Resident:
    """Rows on the device, reshuffled in each epoch.

    Args:
        source: The data.
        train_rows: Indices of the training rows.
        batch_size: M.
        validation_rows: Indices of the held-out rows; None for none.
        validation_source: The source of the held-out rows, if not `source`.
        names: How the rows are named in messages.
        epochs_per_row: Epochs per row of the history, shuffled together: with few rows an epoch is too short.
        weights: (n,), of all rows of the source: how often they are visited, on average, in proportion; None if equal.
        validation_weights: Weights of the held-out rows, if they have their own source.
    """

    source: Source
    train_rows: np.ndarray
    batch_size: int
    validation_rows: np.ndarray | None = None
    validation_source: Source | None = None
    names: RowNames = ROWS_OF_THE_DATA
    epochs_per_row: int = 1
    weights: np.ndarray | None = None
    validation_weights: np.ndarray | None = None
    end = "max_epochs"

    @property
    def plan(self) -> ChunkPlan:
        """How the epochs of one row of the history are split into chunks."""
        return ChunkPlan.of(self.num_rows * self.epochs_per_row, self.batch_size)

    @property
    def num_rows(self) -> int:
        """Training rows."""
        return len(self.train_rows)

    @property
    def num_data(self) -> float:
        """N: a row with weight 3 counts as three rows. It is at least 1, which keeps the prior in bounds."""
        return self.num_rows if self.weights is None else max(float(self.weights[self.train_rows].sum()), 1.0)

    @property
    def held_out(self) -> Rows | None:
        """The held-out rows."""
        if self.validation_rows is None:
            return None
        if self.validation_source is not None:
            return Rows(self.validation_source, self.validation_rows, self.validation_weights)
        return self._some(self.validation_rows)

    def _some(self, numbers):
        return Rows(self.source, numbers, None if self.weights is None else self.weights[numbers])

    @property
    def fingerprint(self) -> str:
        """A checksum of the data: all rows, their weights, which are held out, and how they are split into batches."""
        arrays, text = self.source.described()
        arrays = [*arrays, self.train_rows]
        arrays += [weights for weights in (self.weights, self.validation_weights) if weights is not None]
        if self.validation_rows is not None:
            held_out = None if self.validation_source is None else self.validation_source.rows
            arrays += [self.validation_rows, *jax.tree.leaves(held_out)]
        return checksum(arrays, f"{self.plan} {text}")

    @cached_property
    def _rows_on_device(self) -> Array:
        return on_device(self.train_rows)

    def samples(self, max_epochs: int) -> int:
        """Return the maximum number of samples in a run."""
        return -(-max_epochs // self.epochs_per_row) * self.plan.samples_per_epoch

    def first(self) -> Rows:
        """Return all rows."""
        return self._some(self.train_rows)

    def segments(self, key: Array, max_epochs: int, first: int = 0) -> Generator[tuple[int, Iterator[Chunk]]]:
        """Yield the epochs."""
        for row in self.plan.epochs(first, -(-max_epochs // self.epochs_per_row)):
            yield (row + 1) * self.epochs_per_row, self.chunks(key, row)

    def chunks(self, key: Array, epoch: int, first: int = 0) -> Iterator[Chunk]:
        """Yield the chunks of a row of the history (from 0), without those whose number is below `first`."""
        plan, rows = self.plan, self._rows_on_device
        order = shuffle(key, epoch, self.num_rows, self.epochs_per_row, self.first().weights)
        for number in plan.chunks_of(epoch):
            if number >= first:
                yield Chunk(number, plan, self.source, rows, order, self.names)


def streamed_chunk(number: int, plan: ChunkPlan, source: Source, names: RowNames, key: Array) -> Chunk:
    """Return a chunk of the rows in a source, shuffled."""
    N = num_rows(source.rows)
    return Chunk(number, plan, source, on_device(np.arange(N)), shuffle(key, number, N), names)


def ordered_chunk(number: int, plan: ChunkPlan, source: Source, names: RowNames) -> Chunk:
    """Return a chunk of rows that are in the order of its steps already."""
    order = on_device(np.arange(plan.samples_per_chunk))
    return Chunk(number, plan, source, order, order, names)


def shuffle(key: Array, epoch: int, num_rows: int, repeats: int = 1, weights: np.ndarray | None = None) -> Array:
    """Return the order of one epoch, or of several combined; by NumPy: JAX's permutation is forty times slower.

    Rows with weights are visited in proportion to them, see :func:`aevb.training.weights.visits`.
    """
    random = generator(key, epoch)
    order = random.permutation(num_rows * repeats)
    return on_device(order % num_rows if weights is None else visits(weights, random.random(), repeats)[order])


def generator(key: Array, *numbers: int) -> np.random.Generator:
    """Return a NumPy generator that is a function of a key and some numbers."""
    return np.random.default_rng([*np.asarray(jax.random.key_data(key)), *numbers])
