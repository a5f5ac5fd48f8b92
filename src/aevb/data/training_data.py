"""All that `fit` takes as data, made ready for the training loop: arrays, files, and batches that come one by one."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from aevb.data.batch_feed import BatchFeed
from aevb.data.binarization import DynamicBinarization, binarize, level_scale
from aevb.data.checks import check_rows, column_units, minus, offset_of, scaled
from aevb.data.file_feed import FileFeed, row_bytes
from aevb.data.reading import Reading, column_names, read_matrix, read_training_data, set_column_names
from aevb.data.scan import NO_ROWS, scan
from aevb.data.table import NamedColumns, SomeRows, blocks
from aevb.data.tables import memmap_table, open_tables
from aevb.models import CUSTOM, LIKELIHOODS, Conversion, Numbers
from aevb.training import Feed, Resident, Source
from aevb.training.budget import batch_size_for, num_held_out
from aevb.training.progress import ShareDone

IN_MEMORY_BYTES = 2**28  # files up to this size are simply loaded
MAX_HELD_OUT = 10_000  # rows of data that are larger


class TrainingData(NamedTuple):
    """Data ready to be learned from."""

    reading: Reading
    units: tuple[np.ndarray, np.ndarray] | None  # the columns' means and standard deviations, if they count
    feed: Feed  # of rows less their offset, see `offset_for`


class Wishes(NamedTuple):
    """What `fit` wants from its data."""

    likelihood: str
    own_decoder: bool  # a decoder of the user's own decides what values are allowed
    batch_size: int | str  # or "auto", as for the next
    held_out_fraction: float | str
    progress: bool
    validation_data: Any = None  # rows of the user's own instead of a fraction


def open_training_data(estimator, X: Any, wishes: Wishes, key: Callable[[], Array]) -> TrainingData:
    """Look at the data and make them ready.

    Args:
        estimator: Whose number and names of columns are set.
        X: An array or a data frame; grey levels as a :class:`DynamicBinarization`; the path of a file or folder; an
            iterator, iterable or function that gives batches; tables without some rows as :class:`SomeRows`; arrays or
            grey levels with the names of their columns as :class:`NamedColumns`.
        wishes: What is wanted.
        key: Gives the random key of the choice of held-out rows, once X was found right: a key is compiled.

    Raises:
        ValueError: Naming what is wrong, where, and what to do.
    """
    X, names = X if isinstance(X, NamedColumns) else (X, None)
    if wishes.validation_data is not None and not _is_matrix(X):
        raise ValueError("validation_data: is for data that are an array. Leave it out.")
    if isinstance(X, DynamicBinarization):
        return _from_levels(estimator, X, wishes, key, names)
    if isinstance(X, SomeRows):
        return _from_tables(estimator, X.tables, wishes, key, X.left_out)
    if isinstance(X, str | os.PathLike):
        return _from_tables(estimator, open_tables(X), wishes, key)
    if isinstance(X, np.memmap) and X.nbytes > IN_MEMORY_BYTES:
        return _from_tables(estimator, [memmap_table(X, "X")], wishes, key)
    if gives_batches(X):
        return _from_batches(estimator, X, wishes)
    X = read_matrix(estimator, X, reset=True)
    set_column_names(estimator, names)
    return _from_matrix(X, wishes, key, estimator)


def _is_matrix(X):
    is_large = isinstance(X, np.memmap) and X.nbytes > IN_MEMORY_BYTES
    return isinstance(X, DynamicBinarization) or not (
        isinstance(X, str | os.PathLike | SomeRows) or gives_batches(X) or is_large
    )


def gives_batches(X) -> bool:
    """Whether X is something that gives batches, rather than an array or what can become one."""
    is_array = any(hasattr(X, name) for name in ("__array__", "__dataframe__", "shape", "__getitem__"))
    return not is_array and (callable(X) or hasattr(X, "__iter__"))


def _from_matrix(X, wishes, key, estimator):
    columns = column_names(estimator)
    reading = read_training_data(X, wishes.likelihood, own_decoder=wishes.own_decoder, columns=columns)
    units = units_for(X, reading)
    offset = offset_for(reading, units)
    source = Source(minus(X, offset), Conversion(Numbers(reading.scale)))
    if wishes.validation_data is not None:
        held_out = _given_rows(estimator, wishes, reading, offset)
        feed = _resident(source, np.arange(len(X)), wishes, *held_out)
    else:
        train_rows, validation_rows = _hold_out(len(X), wishes.held_out_fraction, key)
        feed = _resident(source, train_rows, wishes, validation_rows)
    return TrainingData(reading, units, feed)


def _from_levels(estimator, X: DynamicBinarization, wishes, key, names=None):
    """The model's data are binary; only inside the step they are grey levels. Held-out rows are drawn once."""
    levels = read_matrix(estimator, X.levels, reset=True)
    set_column_names(estimator, names)
    scale, reading = level_scale(levels), Reading("bernoulli", 1.0)
    if wishes.likelihood not in ("auto", "bernoulli"):
        raise ValueError(f"likelihood={wishes.likelihood!r}: binary draws are for 'bernoulli'.")
    read_training_data(levels, "bernoulli", columns=column_names(estimator))
    source = Source(levels, Conversion(Numbers(scale, is_dynamic=True)))
    if wishes.validation_data is not None:
        held_out = _given_rows(estimator, wishes, reading)
        return TrainingData(reading, None, _resident(source, np.arange(len(levels)), wishes, *held_out))
    train_rows, validation_rows = _hold_out(len(levels), wishes.held_out_fraction, key)
    if validation_rows is None:
        return TrainingData(reading, None, _resident(source, train_rows, wishes))
    drawn = binarize(levels[validation_rows], "static", seed=int(_generator(key).integers(2**31)))
    held_out = np.arange(len(drawn)), Source(drawn)
    return TrainingData(reading, None, _resident(source, train_rows, wishes, *held_out))


def _given_rows(estimator, wishes, reading, offset=None):
    rows = read_matrix(estimator, wishes.validation_data, reset=False)
    scale = reading.scale if rows.dtype == np.uint8 else 1.0
    check_rows(rows, reading.likelihood, scale=scale, name="validation_data", columns=column_names(estimator))
    return np.arange(len(rows)), Source(minus(rows, offset), Conversion(Numbers(scale)))


def _resident(source, train_rows, wishes, *held_out):
    return Resident(source, train_rows, batch_size_for(len(train_rows), wishes.batch_size), *held_out)


def is_large(tables) -> bool:
    """Whether the rows of tables are read a piece at a time, and not loaded."""
    return sum(table.num_rows for table in tables) * row_bytes(tables[0]) > IN_MEMORY_BYTES


def _from_tables(estimator, tables, wishes, key, left_out=NO_ROWS):
    names, num_rows = tables[0].columns, sum(table.num_rows for table in tables)
    is_small = not is_large(tables) and not len(left_out)
    some = (rows.copy() for _, _, rows in blocks(tables))
    X = read_matrix(estimator, np.concatenate(list(some)) if is_small else next(some), reset=True)
    set_column_names(estimator, names)
    if is_small:
        return _from_matrix(X, wishes, key, estimator)
    num_judged = num_held_out(num_rows - len(left_out), wishes.held_out_fraction, MAX_HELD_OUT)
    num_drawn = num_judged + len(left_out)  # enough, if all that are left out are among them
    drawn = _generator(key).choice(num_rows, num_drawn, replace=False, shuffle=len(left_out) > 0)
    validation_rows = np.sort(drawn[~np.isin(drawn, left_out)][:num_judged])
    options = {"own_decoder": wishes.own_decoder, "left_out": left_out}
    with ShareDone(wishes.progress, "reading") as bar:
        found = scan(tables, wishes.likelihood, validation_rows, **options, update=bar.update)
    scale, offset = found.reading.scale, offset_for(found.reading, found.units)
    held_out = None
    if num_judged:
        held_out = Source(minus(found.kept, offset), Conversion(Numbers(scale))), np.arange(num_judged)
    other_rows = np.union1d(validation_rows, left_out)
    tables = [table.minus(offset) for table in tables]
    batch_size = batch_size_for(num_rows, wishes.batch_size)
    feed = FileFeed(tables, scale, batch_size, other_rows, held_out, found.checksum)
    return TrainingData(found.reading, found.units, feed)


def _from_batches(estimator, X, wishes):
    """Likelihood and units are those of the first rows, about a chunk; later batches are checked by them."""
    reading = None

    def read(batch, is_first):
        rows = read_matrix(estimator, batch, reset=is_first)
        if reading is not None:
            check_rows(rows, reading.likelihood, scale=reading.scale, columns=column_names(estimator))
        return rows

    feed = BatchFeed(X, read, batch_size_for(None, wishes.batch_size))
    try:
        reading = read_training_data(
            feed.head, wishes.likelihood, own_decoder=wishes.own_decoder, columns=column_names(estimator)
        )
    except ValueError as error:
        raise ValueError(f"the first {len(feed.head)} rows of the batches: {error}") from None
    units = units_for(feed.head, reading)
    feed.scale, feed.offset = reading.scale, offset_for(reading, units)
    return TrainingData(reading, units, feed)


def units_for(X: np.ndarray, reading: Reading) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the columns' means and standard deviations, as x is read, if the networks see standardized data."""
    if not LIKELIHOODS[reading.likelihood].standardize:
        return None
    return scaled(column_units(X, is_shared=reading.are_levels), reading.scale)


def offset_for(reading: Reading, units) -> np.ndarray | None:
    """Return what is subtracted from the columns; an own decoder speaks of x as it is, and bytes have few digits."""
    return None if reading.likelihood == CUSTOM or reading.scale != 1 else offset_of(units)


def _hold_out(num_rows, fraction, key):
    count = num_held_out(num_rows, fraction)
    if not count:
        return np.arange(num_rows), None
    # NumPy's, from the same key: one program less to compile before the first step.
    shuffled = _generator(key).permutation(num_rows)
    return np.sort(shuffled[count:]), np.sort(shuffled[:count])


def _generator(key):
    return np.random.default_rng(np.asarray(jax.random.key_data(key())))
