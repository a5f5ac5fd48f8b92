"""Apply functions of single datapoints to many, in batches of one shape."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from aevb.arrays import fingerprint
from aevb.estimators import Terms, with_terms
from aevb.models import join, split
from aevb.models.recognition import noise_of
from aevb.parallel import ALONE, group
from aevb.training.source import Rows, Source

BATCH = 256  # every call is padded to this many rows: one compiled program, and results independent of the other rows


class Batches:
    """Rows in batches of one shape, on the device when they are first used, and from then on.

    Args:
        source: The data.
        rows: Indices of the rows.
        weights: Their weights; None if they are equal.
        size: Rows per batch.
    """

    def __init__(self, source: Source, rows: np.ndarray, weights: np.ndarray | None = None, size: int = BATCH):
        self.num_rows, self.weights, self._source, self._rows = len(rows), weights, source, rows
        self._batches: list[Source] | None = None
        self._size = size

    @property
    def parts(self) -> Sequence["Batches"]:
        """Batches of one shape each: these."""
        return (self,)

    def kept(self) -> Iterable[Source]:
        """Return the batches, which stay on the device; those of sparse rows are made again, since they are dense."""
        if self._source.is_sparse:
            return self
        if self._batches is None:
            self._batches = list(self)
        return self._batches

    def __iter__(self) -> Iterator[Source]:
        for start in range(0, self.num_rows, self._size):
            # The last batch repeats rows to fill up.
            numbers = np.resize(self._rows[start : start + self._size], self._size)
            # A program sees only a batch: with the whole source, there would be one program for each N.
            yield Source(self._source.stored(numbers), self._source.conversion)


class SeveralBatches(NamedTuple):
    """Rows in batches of several shapes, such as sequences padded to several lengths."""

    parts: Sequence[Batches]
    weights: np.ndarray | None = None

    @property
    def num_rows(self) -> int:
        """The number of rows in all parts."""
        return sum(part.num_rows for part in self.parts)


def batches_of(rows: Rows | SeveralBatches) -> Batches | SeveralBatches:
    """Return the held-out rows of a feed in batches."""
    return Batches(*rows) if isinstance(rows, Rows) else rows


def rowwise(function: Callable, model, source: Source, rows: np.ndarray, *arguments, size: int = BATCH) -> Any:
    """Return ``function(model, x, *arguments)`` for each of the given rows of the source, stacked.

    The function is compiled once per model structure; it should be a module-level function, so that the compiled
    program is reused. It sees `size` rows at once.
    """
    return _over(function, model, Batches(source, rows, size=size), len(rows), *arguments)


def _over(function, model, batches: Iterable[Source], num_rows, *arguments, together: Callable = ALONE.together):
    parameters, constants, skeleton = split(model)
    run = partial(_run_batch, function=function, skeleton=skeleton)
    results = together(lambda batch: run((parameters, constants), batch, arguments), batches)
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:num_rows], *results)


@partial(jax.jit, static_argnames=("function", "skeleton"))
def _run_batch(arrays, batch, arguments, *, function, skeleton):
    parameters, constants = arrays
    model = join(parameters, constants, skeleton)
    return jax.vmap(lambda x: function(model, x, *arguments))(batch.read(slice(None)))


def lower_bounds(
    generative, recognition, source: Source, rows: np.ndarray, key: Array, estimator: Callable, num_samples: int = 1
) -> np.ndarray:
    """Return the estimated lower bound of each row, in nats; see :func:`bound_terms`."""
    terms = bound_terms(generative, recognition, source, rows, key, estimator, num_samples)
    return np.asarray(terms.lower_bound)


def bound_terms(
    generative, recognition, source: Source, rows: np.ndarray, key: Array, estimator: Callable, num_samples: int = 1
) -> Terms:
    """Return the estimated lower bound of each row, and the bound's two terms, in nats.

    The noise is a function of the key and of the datapoint itself: a value does not depend on the order of the rows or
    on the other rows.
    """
    return rowwise(terms_of_row(estimator, num_samples), (generative, recognition), source, rows, key)


def bound_terms_of_batches(
    models: tuple, batches: Batches | SeveralBatches, key: Array, estimator: Callable, num_samples: int
) -> Terms:
    """Return the same for batches that stay on the device, to be used again; processes divide them."""
    function = terms_of_row(estimator, num_samples)
    together = group().together
    found = [_over(function, models, part.kept(), part.num_rows, key, together=together) for part in batches.parts]
    return jax.tree.map(lambda *parts: np.concatenate(parts), *found)


@cache  # the same function for the same arguments, so that its compiled program is reused
def terms_of_row(estimator: Callable, num_samples: int) -> Callable:
    """Return a function of the models, one datapoint and a key that returns its bound with `num_samples` draws."""

    def of_row(models, x, key):
        generative, recognition = models
        one_key = jax.random.fold_in(key, fingerprint(x))
        noise = noise_of(estimator, recognition, x).sample(one_key, (num_samples,))
        return with_terms(estimator)(generative, recognition, x, noise)

    return of_row
