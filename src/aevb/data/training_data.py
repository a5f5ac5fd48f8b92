"""Turn everything that `fit` accepts as data (arrays, files, streams of batches) into feeds for the training loop."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from aevb.arrays import num_rows
from aevb.data.batch_feed import BatchFeed
from aevb.data.binarization import DynamicBinarization, binarize, level_scale
from aevb.data.checks import check_rows, column_units, minus, offset_of, scaled
from aevb.data.file_feed import FileFeed, row_bytes
from aevb.data.frames import TableFormat, as_table, frame_of
from aevb.data.image_arrays import flat_images
from aevb.data.lanes import lanes_for, say_shares
from aevb.data.reading import (
    Reading,
    column_names,
    read_matrix,
    read_training_data,
    set_column_names,
    set_table_columns,
)
from aevb.data.remote_tables import tables_at
from aevb.data.request import DataRequest
from aevb.data.scan import NO_ROWS, scan
from aevb.data.table import NamedColumns, SomeRows, blocks
from aevb.data.tables import memmap_table
from aevb.data.weights import Used, used_rows
from aevb.models import CUSTOM, LIKELIHOODS, TABLE, Conversion, Numbers, SparseRows, is_sparse
from aevb.training import Feed, Resident, Source
from aevb.training.budget import batch_size_for, num_held_out
from aevb.training.feed import RowNames
from aevb.training.progress import ShareDone
from aevb.training.source import Rows

IN_MEMORY_BYTES = 2**28  # files up to this size are simply loaded
MAX_HELD_OUT = 10_000  # rows held out of larger data


class TrainingData(NamedTuple):
    """Data ready for training."""

    reading: Reading
    units: tuple[np.ndarray, np.ndarray] | None  # the columns' means and standard deviations, if they are used
    feed: Feed  # of rows minus their offset, see `offset_for`
    table: TableFormat | None = None  # of a table whose columns have families of their own


def open_training_data(estimator, X: Any, request: DataRequest, key: Callable[[], Array]) -> TrainingData:
    """Inspect the data and prepare them for training.

    Args:
        estimator: The estimator whose number and names of columns are set.
        X: An array or a data frame; grey levels as a :class:`DynamicBinarization`; the path of a file or folder; an
            iterator, iterable or function that yields batches; tables without some rows as :class:`SomeRows`; arrays
            or grey levels with the names of their columns as :class:`NamedColumns`.
        request: What `fit` asks for.
        key: Returns the random key for choosing held-out rows. It is called only after X has been checked, because
            making a key compiles a program.

    Raises:
        ValueError: The data cannot be used; the message says what is wrong, where, and what to do.
    """
    X, names = X if isinstance(X, NamedColumns) else (X, None)
    X = flat_images(estimator, X, reset=True)
    if request.validation_data is not None and not _is_matrix(X):
        raise ValueError("validation_data can only be given with an array as data. Leave it out.")
    if not request.own_decoder and (frame := _table_of(X, request)) is not None:
        return _from_frame(estimator, frame, request, key)
    if isinstance(X, DynamicBinarization):
        return _from_levels(estimator, X, request, key, names)
    if isinstance(X, SomeRows):
        return _from_tables(estimator, X.tables, request, key, X.left_out)
    if isinstance(X, str | os.PathLike):
        return _from_tables(estimator, tables_at(X), request, key)
    if isinstance(X, np.memmap) and X.nbytes > IN_MEMORY_BYTES:
        return _from_tables(estimator, [memmap_table(X, "X")], request, key)
    if gives_batches(X):
        return _from_batches(estimator, X, request)
    X = read_matrix(estimator, X, reset=True)
    set_column_names(estimator, names)
    return _from_matrix(X, request, key, estimator)


def _is_matrix(X):
    is_large = isinstance(X, np.memmap) and X.nbytes > IN_MEMORY_BYTES
    return isinstance(X, DynamicBinarization) or not (
        isinstance(X, str | os.PathLike | SomeRows) or gives_batches(X) or is_large
    )


def gives_batches(X) -> bool:
    """Whether X yields batches, rather than being an array or convertible to one."""
    is_array = any(hasattr(X, name) for name in ("__array__", "__dataframe__", "shape", "__getitem__"))
    return not is_array and (callable(X) or hasattr(X, "__iter__"))


def _from_matrix(X, request, key, estimator):
    X, weights, numbers = used = used_rows(X, request.sample_weight)
    options = {"own_decoder": request.own_decoder, "columns": column_names(estimator), "row_numbers": numbers}
    reading = read_training_data(X, request.likelihood, **options)
    units = units_for(X, reading, weights)
    offset = offset_for(reading, units)
    source = request.conditioned(_source(X, offset, reading.scale), numbers)
    if request.validation_data is not None:
        held_out = _given_rows(estimator, request, reading, offset)
        feed = _resident(source, np.arange(X.shape[0]), request, *held_out)
    else:
        train_rows, validation_rows = hold_out(X.shape[0], request.held_out_fraction, key)
        feed = _resident(source, train_rows, request, validation_rows)
    return TrainingData(reading, units, _weighted(feed, used))


def _table_of(X, request):
    """Return data as a frame if they are a table; missing values in rows of weight 0 do not make them one."""
    frame = as_table(X, request.likelihood)
    if isinstance(frame, np.ndarray) and np.shape(request.sample_weight) == (len(frame),):
        used = frame[np.asarray(request.sample_weight, float) > 0]
        return frame if as_table(used, request.likelihood) is not None else None
    return frame


def _from_frame(estimator, frame, request, key):
    """Return the rows of a table with mixed columns, as stored numbers."""
    table = TableFormat.learn(frame, request.likelihood, request.missing)
    set_table_columns(estimator, table)
    return table_data(table, table.encode(frame), request, key)


def table_data(table: TableFormat, rows: np.ndarray, request: DataRequest, key: Callable[[], Array]) -> TrainingData:
    """Return the encoded rows of a table (N, D), ready for training; see :func:`open_training_data`."""
    rows, _, numbers = used = used_rows(rows, request.sample_weight)
    source = request.conditioned(Source(*table.store(rows)), numbers)
    if request.validation_data is not None:
        held_out = Source(*table.store(table.encode(frame_of(request.validation_data))))
        held_out = request.conditioned(held_out, held_out=True)
        feed = _resident(source, np.arange(len(rows)), request, np.arange(num_rows(held_out.rows)), held_out)
    else:
        train_rows, validation_rows = hold_out(len(rows), request.held_out_fraction, key)
        feed = _resident(source, train_rows, request, validation_rows)
    return TrainingData(Reading(TABLE, 1.0), None, _weighted(feed, used), table)


def _source(X, offset, scale):
    return Source(SparseRows.of(X) if is_sparse(X) else minus(X, offset), Conversion(Numbers(scale)))


def _from_levels(estimator, X: DynamicBinarization, request, key, names=None):
    """Return grey levels from which each step draws binary data for the model. Held-out rows are drawn once."""
    levels, weights, numbers = used = used_rows(read_matrix(estimator, X.levels, reset=True), request.sample_weight)
    set_column_names(estimator, names)
    reason = "binary draws are 0 or 1" if request.likelihood == "auto" else ""
    scale, reading = level_scale(levels), Reading("bernoulli", 1.0, reason)
    if request.likelihood not in ("auto", "bernoulli"):
        raise ValueError(f"likelihood={request.likelihood!r}: binary draws need 'bernoulli'.")
    read_training_data(levels, "bernoulli", columns=column_names(estimator), row_numbers=numbers)
    source = request.conditioned(Source(levels, Conversion(Numbers(scale, is_dynamic=True))), numbers)
    if request.validation_data is not None:
        held_out = _given_rows(estimator, request, reading)
        feed = _resident(source, np.arange(len(levels)), request, *held_out)
        return TrainingData(reading, None, _weighted(feed, used))
    train_rows, validation_rows = hold_out(len(levels), request.held_out_fraction, key)
    if validation_rows is None:
        return TrainingData(reading, None, _weighted(_resident(source, train_rows, request), used))
    drawn = binarize(levels[validation_rows], "static", seed=int(_generator(key).integers(2**31)))
    their_numbers = validation_rows if numbers is None else numbers[validation_rows]
    held_out = np.arange(len(drawn)), request.conditioned(Source(drawn), their_numbers)
    feed = _weighted(_resident(source, train_rows, request, *held_out), used)
    return TrainingData(
        reading, None, replace(feed, validation_weights=None if weights is None else weights[validation_rows])
    )


def _given_rows(estimator, request, reading, offset=None):
    rows = read_matrix(estimator, request.validation_data, reset=False)
    scale = reading.scale if rows.dtype == np.uint8 else 1.0
    check_rows(rows, reading.likelihood, scale=scale, name="validation_data", columns=column_names(estimator))
    return np.arange(rows.shape[0]), request.conditioned(_source(rows, offset, scale), held_out=True)


def _resident(source, train_rows, request, *held_out):
    return Resident(source, train_rows, batch_size_for(len(train_rows), request.batch_size), *held_out)


def _weighted(feed: Resident, used: Used) -> Resident:
    """Return a feed of the rows that are used, with their weights, and their numbers for messages."""
    return replace(feed, weights=used.weights, names=RowNames(used.numbers))


def _refuse_weights(request, what):
    for name, given in (("sample_weight", request.sample_weight), ("conditional=True", request.given)):
        if given is not None:
            raise ValueError(f"{name}: needs rows in memory, but {what}. Leave it out, or give an array as data.")


def is_large(tables) -> bool:
    """Whether the rows of tables are read in pieces instead of loaded."""
    return sum(table.num_rows for table in tables) * row_bytes(tables[0]) > IN_MEMORY_BYTES


def _from_tables(estimator, tables, request, key, left_out=NO_ROWS):
    names, num_rows = tables[0].columns, sum(table.num_rows for table in tables)
    is_small = not is_large(tables) and not len(left_out)
    if not is_small:
        _refuse_weights(request, "these are read in pieces")
    shape = 2, tables[0].num_columns  # of a matrix that is only looked at
    X = np.concatenate([rows.copy() for _, _, rows in blocks(tables)]) if is_small else np.zeros(shape, tables[0].dtype)
    X = read_matrix(estimator, X, reset=True)
    set_column_names(estimator, names)
    if is_small:
        return _from_matrix(X, request, key, estimator)
    num_judged = num_held_out(num_rows - len(left_out), request.held_out_fraction, MAX_HELD_OUT)
    num_drawn = num_judged + len(left_out)  # enough, even if all rows that are left out are among them
    drawn = _generator(key).choice(num_rows, num_drawn, replace=False, shuffle=len(left_out) > 0)
    validation_rows = np.sort(drawn[~np.isin(drawn, left_out)][:num_judged])
    other_rows = np.union1d(validation_rows, left_out)
    lanes = lanes_for(tables, batch_size_for(num_rows, request.batch_size), other_rows)
    say_shares(lanes)
    options = {
        "own_decoder": request.own_decoder,
        "left_out": left_out,
        "edges": lanes.rows.tolist(),
        "owners": lanes.owners,
    }
    with ShareDone(request.progress, "reading") as bar:
        found = scan(tables, request.likelihood, validation_rows, **options, update=bar.update)
    scale, offset = found.reading.scale, offset_for(found.reading, found.units)
    held_out = None
    if num_judged:
        held_out = Rows(Source(minus(found.kept, offset), Conversion(Numbers(scale))), np.arange(num_judged))
    tables = [table.minus(offset) for table in tables]
    return TrainingData(
        found.reading, found.units, FileFeed(tables, scale, lanes, other_rows, held_out, found.checksum)
    )


def _from_batches(estimator, X, request):
    """Decide likelihood and units from the first rows, about a chunk; later batches are checked against them."""
    _refuse_weights(request, "batches are not kept")
    reading = None

    def read(batch, is_first):
        rows: Any = read_matrix(estimator, batch, reset=is_first)
        if reading is not None:
            check_rows(rows, reading.likelihood, scale=reading.scale, columns=column_names(estimator))
        return rows.toarray() if is_sparse(rows) else rows

    feed = BatchFeed(X, read, batch_size_for(None, request.batch_size))
    try:
        reading = read_training_data(
            feed.head, request.likelihood, own_decoder=request.own_decoder, columns=column_names(estimator)
        )
    except ValueError as error:
        raise ValueError(f"the first {len(feed.head)} rows of the batches: {error}") from None
    units = units_for(feed.head, reading)
    feed.scale, feed.offset = reading.scale, offset_for(reading, units)
    return TrainingData(reading, units, feed)


def units_for(
    X: np.ndarray, reading: Reading, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the columns' means and standard deviations, as x is read, if the models are built from them."""
    if LIKELIHOODS[reading.likelihood].counts:
        mean = np.asarray(X.mean(axis=0), np.float64).ravel()
        return mean, np.ones_like(mean)  # only the means are used
    if not LIKELIHOODS[reading.likelihood].standardize:
        return None
    return scaled(column_units(X, weights, is_shared=reading.are_levels), reading.scale)


def offset_for(reading: Reading, units) -> np.ndarray | None:
    """Return what is subtracted from the columns; nothing for bytes, or if x itself is modelled."""
    models_x_itself = reading.likelihood == CUSTOM or LIKELIHOODS[reading.likelihood].counts
    return None if models_x_itself or reading.scale != 1 else offset_of(units)


def hold_out(num_rows: int, fraction: float | str, key: Callable[[], Array]) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the numbers of the training rows and of the held-out ones, None for none; by chance, with this key."""
    count = num_held_out(num_rows, fraction)
    if not count:
        return np.arange(num_rows), None
    # NumPy's generator, seeded by the same key: one program less to compile before the first step.
    shuffled = _generator(key).permutation(num_rows)
    return np.sort(shuffled[count:]), np.sort(shuffled[:count])


def _generator(key):
    return np.random.default_rng(np.asarray(jax.random.key_data(key())))
