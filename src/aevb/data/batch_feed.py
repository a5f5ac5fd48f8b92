"""Batches from a generator, an iterable such as a data loader, or a callable.

Paper: §2.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain, count, islice
from typing import Any

import numpy as np
from jax import Array

from aevb.data.checks import minus
from aevb.data.chunks import max_steps, numbered, regroup
from aevb.models import Conversion, Numbers
from aevb.training import Chunk, ChunkPlan, Source, read_ahead
from aevb.training.feed import RowNames, streamed_chunk
from aevb.training.source import Rows

MAX_STEPS = 50  # per chunk: arriving data should not wait long
SEGMENT = 20  # chunks per row of the history, if a pass is longer


class BatchFeed:
    """Chunks of rows from batches of any length, in the order of arrival; each chunk is shuffled.

    Args:
        X: An iterator, which is consumed once; or an iterable or a function that returns one, for several passes.
        read: ``read(batch, is_first)`` checks a batch and returns its rows, or raises a ValueError.
        batch_size: M.

    Raises:
        ValueError: The first batches cannot be used, or there are none.
    """

    num_rows = None
    num_data = None
    held_out = None
    fingerprint = None

    def __init__(self, X: Any, read: Callable[[Any, bool], np.ndarray], batch_size: int):
        self.end = "end_of_data" if hasattr(X, "__next__") else "max_epochs"
        self.scale = 1.0  # factor for stored numbers; known after the first rows have been checked
        self.offset: np.ndarray | None = None  # subtracted from the columns first, if set
        self._X, self._read = X, read
        self._dtype = None  # of the first batch; all others must match
        arrays = self._matrices(1)
        first = next(arrays)
        row_bytes = first.shape[1] * first.dtype.itemsize
        self._plan = ChunkPlan(batch_size, min(MAX_STEPS, max_steps(row_bytes, batch_size)), 1)
        size, head = self._plan.samples_per_chunk, [first]
        while sum(map(len, head)) < size and (rows := next(arrays, None)) is not None:
            head.append(rows)
        self.head = np.concatenate(head)  # whole batches: one chunk of rows or slightly more
        self._first_pass = regroup(numbered(chain([self.head], arrays)), size)

    def samples(self, max_epochs: int) -> None:
        """Return None: the number of samples is unknown."""

    def first(self) -> Rows:
        """Return the rows of the first chunk."""
        rows = self.head[: self._plan.samples_per_chunk]
        return Rows(self._source(rows), np.arange(len(rows)))

    def segments(self, key: Array, max_epochs: int, first: int = 0) -> Generator[tuple[int, Iterator[Chunk]]]:
        """Yield each pass, in parts if it is long."""
        numbers = count()
        for epoch in range(1, 1 + (1 if self.end == "end_of_data" else max_epochs)):
            with closing(read_ahead(self._chunks(epoch, key, numbers))) as chunks:
                while (chunk := next(chunks, None)) is not None:
                    yield epoch, chain([chunk], islice(chunks, SEGMENT - 1))

    def _chunks(self, epoch, key, numbers):
        size = self._plan.samples_per_chunk
        arrays = self._first_pass if epoch == 1 else regroup(numbered(self._matrices(epoch)), size)
        for place, (rows, row_numbers) in enumerate(arrays):
            plan = self._plan
            if len(rows) < size:  # the end of a pass: its own program, the same for all passes of equal length
                plan = replace(ChunkPlan.of(len(rows), plan.batch_size, plan.num_steps), num_chunks=1)
                if place and 2 * len(rows) < self._plan.batch_size:
                    return  # too few for a comparable gradient
            names = RowNames(row_numbers, f"pass {epoch}")
            yield streamed_chunk(next(numbers), plan, self._source(rows[: plan.samples_per_chunk]), names, key)

    def _source(self, rows):
        return Source(minus(rows, self.offset), Conversion(Numbers(self.scale)))

    def _matrices(self, epoch):
        """Yield the rows of each batch of a pass, all of the same width and type."""
        number = None
        for number, batch in enumerate(self._start()):
            try:
                rows = self._read(batch, epoch == 1 and number == 0)
                if self._dtype is not None and rows.dtype != self._dtype:
                    first = "batch 0 of pass 1" if epoch > 1 else "batch 0"
                    raise ValueError(
                        f"its dtype is {rows.dtype}, but that of {first} is {self._dtype}. Use one type throughout."
                    )
            except ValueError as error:
                raise ValueError(f"batch {number} (from 0), pass {epoch}: {error}{_hint(batch)}") from error
            self._dtype = rows.dtype
            yield rows
        if number is None:
            again = " A function or an iterable must start over each time." if epoch > 1 else ""
            raise ValueError(f"X gave no batches in pass {epoch}. Give rows, arrays of shape (n, D).{again}")

    def _start(self) -> Iterable:
        batches: Any = self._X() if callable(self._X) else self._X
        if not hasattr(batches, "__iter__"):
            raise ValueError(f"X() returned {type(batches).__name__}; a function must return an iterator of batches.")
        return batches


def _hint(batch):
    return " Yield the rows alone, not (X, y)." if isinstance(batch, list | tuple) else ""
