"""Sequences of different lengths: padded to a few lengths, with one compiled program for each."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, final

import jax
import numpy as np
from jax import Array

from aevb.arrays import checksum, on_device
from aevb.training.evaluation import SeveralBatches
from aevb.training.feed import Chunk, ChunkPlan, RowNames, generator
from aevb.training.source import Rows, Source

MAX_BUCKETS = 3  # in training, where each compiles a large program
FEW_STEPS = 10_000  # of all sequences: below, one program compiles sooner than several save time
MAX_ENDS = 100  # lengths that are considered as ends of buckets
STEPS_PER_CHUNK = 8  # with several buckets, so that short and long sequences alternate


def padded_length(length: int) -> int:
    """Return the smallest of 8, 12, 16, 24, 32, 48, ... that is not below a length: few shapes, little padding.

    Example:
        >>> [padded_length(length) for length in (1, 9, 60, 97)]
        [8, 12, 64, 128]
    """
    power = 8
    while power < length:
        if power * 3 // 2 >= length:
            return power * 3 // 2
        power *= 2
    return power


def buckets_of(lengths: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Return sequences by their padded length, a function of their own only: pairs of it and the sequences' numbers.

    Example:
        >>> [(length, numbers.tolist()) for length, numbers in buckets_of(np.array([5, 30, 7, 31]))]
        [(8, [0, 2]), (32, [1, 3])]
    """
    padded = np.array([padded_length(int(length)) for length in lengths])
    return [(edge, np.flatnonzero(padded == edge)) for edge in sorted(set(padded.tolist()))]


def training_buckets(lengths: np.ndarray, smallest: int, most: int | None = None) -> list[tuple[int, np.ndarray]]:
    """Return sequences in the few buckets that pad the fewest steps, each padded to its longest sequence.

    Args:
        lengths: (n,).
        smallest: Sequences in a bucket at least, if there is more than one.
        most: The largest number of buckets; None for 3, or 1 if all sequences together have fewer than 10,000 steps.

    Example:
        >>> lengths = np.array([5, 30, 7, 31, 100])
        >>> [(length, numbers.tolist()) for length, numbers in training_buckets(lengths, 2, most=2)]
        [(30, [0, 1, 2]), (100, [3, 4])]
    """
    most = most or (MAX_BUCKETS if lengths.sum() >= FEW_STEPS else 1)
    ends = np.unique(np.quantile(lengths, np.linspace(0, 1, MAX_ENDS), method="higher"))
    below = np.array([0, *(np.count_nonzero(lengths <= end) for end in ends)])
    # By dynamic programming: the fewest padded steps of all sequences up to an end, and the ends of their buckets.
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, ())] + [(np.inf, ())] * len(ends)
    for _ in range(most):
        now: list[tuple[float, tuple[int, ...]]] = [best[0]]
        for j, end in enumerate(ends, 1):
            starts = [i for i in range(j) if below[j] - below[i] >= smallest or (i == 0 and j == len(ends))]
            options = [(best[i][0] + end * (below[j] - below[i]), (*best[i][1], int(end))) for i in starts]
            now.append(min([best[j], *options], key=lambda option: option[0]))
        best = now
    edges = np.array(best[-1][1])
    to = edges[np.searchsorted(edges, lengths)]
    return [(int(edge), np.flatnonzero(to == edge)) for edge in edges]


class Bucket(NamedTuple):
    """Training sequences padded to one length."""

    source: Source
    numbers: np.ndarray  # (n,), in the data, for messages


@final
@dataclass(frozen=True, eq=False)
class Bucketed:
    """A feed of sequences in buckets; each step reads sequences of one bucket, and short chunks alternate.

    Each sequence is visited as often as any other, and all batches have the same size, so that the average over steps
    is the average over sequences.

    Args:
        buckets: The training sequences.
        batch_size: M.
        held_out: The held-out sequences; None for none.
        epochs_per_row: Epochs per row of the history.
        of: What the sequences are called in messages.
    """

    buckets: Sequence[Bucket]
    batch_size: int
    held_out: SeveralBatches | None = None
    epochs_per_row: int = 1
    of: str = "the sequences"
    end = "max_epochs"

    @property
    def num_rows(self) -> int:
        """Training sequences."""
        return sum(len(bucket.numbers) for bucket in self.buckets)

    @property
    def num_data(self) -> float:
        """N."""
        return self.num_rows

    @cached_property
    def plans(self) -> list[ChunkPlan]:
        """How a row of the history is split into chunks, for each bucket."""
        sizes = [len(bucket.numbers) * self.epochs_per_row for bucket in self.buckets]
        if len(sizes) == 1:
            return [ChunkPlan.of(sizes[0], self.batch_size)]
        return [_short_chunks(size, min(self.batch_size, size)) for size in sizes]

    @property
    def steps_per_epoch(self) -> int:
        """Steps in a pass through the sequences."""
        return sum(plan.num_steps * plan.num_chunks for plan in replace(self, epochs_per_row=1).plans)

    @property
    def fingerprint(self) -> str:
        """A checksum of the data, which are held out, and how they are split into batches."""
        described = [bucket.source.described() for bucket in self.buckets]
        arrays = [array for arrays, _ in described for array in arrays]
        if self.held_out is not None:
            arrays += jax.tree.leaves([[batch.rows for batch in part] for part in self.held_out.parts])
        return checksum(arrays, f"{self.plans} {[text for _, text in described]}")

    def samples(self, max_epochs: int) -> int:
        """Return the maximum number of sequences that a run reads."""
        return -(-max_epochs // self.epochs_per_row) * sum(plan.samples_per_epoch for plan in self.plans)

    def first(self) -> Rows:
        """Return the sequences of the largest bucket."""
        bucket = max(self.buckets, key=lambda bucket: len(bucket.numbers))
        return Rows(bucket.source, np.arange(len(bucket.numbers)))

    def segments(self, key: Array, max_epochs: int, first: int = 0) -> Generator[tuple[int, Iterator[Chunk]]]:
        """Yield the rows of the history."""
        num_chunks = sum(plan.num_chunks for plan in self.plans)
        for row in range(max(first - 1, 0) // num_chunks, -(-max_epochs // self.epochs_per_row)):
            yield (row + 1) * self.epochs_per_row, self._chunks(key, row)

    def _chunks(self, key: Array, row: int) -> Iterator[Chunk]:
        random = generator(key, row)
        orders = [random.permutation(len(bucket.numbers) * self.epochs_per_row) for bucket in self.buckets]
        places = [(number, chunk) for number, plan in enumerate(self.plans) for chunk in range(plan.num_chunks)]
        for place, turn in enumerate(random.permutation(len(places))):
            number, chunk = places[turn]
            plan, (source, numbers) = self.plans[number], self.buckets[number]
            some = orders[number][chunk * plan.samples_per_chunk :][: plan.samples_per_chunk] % len(numbers)
            names = RowNames(numbers, self.of)
            rows = on_device(np.arange(len(numbers)))
            yield Chunk(row * len(places) + place, replace(plan, num_chunks=1), source, rows, on_device(some), names)


def _short_chunks(num_rows: int, batch_size: int) -> ChunkPlan:
    """Return the plan with chunks of 4 to 8 steps that leaves out the fewest sequences."""
    steps = num_rows // batch_size
    lengths = range(min(STEPS_PER_CHUNK // 2, steps), min(STEPS_PER_CHUNK, steps) + 1)
    per_chunk = max(lengths, key=lambda length: (steps // length * length, length))
    return ChunkPlan(batch_size, per_chunk, steps // per_chunk)
