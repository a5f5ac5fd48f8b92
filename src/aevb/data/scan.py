"""One pass through all rows of tables that do not fit into memory, before training."""

import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from aevb.data.checks import check_rows, scaled, units_of
from aevb.data.kinds import sample_numbers
from aevb.data.reading import Reading, check_density, decide
from aevb.data.table import Table, blocks
from aevb.models import LIKELIHOODS

NO_ROWS = np.zeros(0, int)


class Scan(NamedTuple):
    """What a pass through all rows found."""

    reading: Reading
    units: tuple[np.ndarray, np.ndarray] | None  # means and standard deviations of the columns, if they are used
    kept: np.ndarray  # the requested rows
    checksum: int  # of all rows, including those left out


def scan(
    tables: list[Table],
    likelihood: str,
    keep: np.ndarray,
    *,
    own_decoder: bool = False,
    left_out: np.ndarray = NO_ROWS,
    update: Callable[[float], None] = lambda share: None,
) -> Scan:
    """Read all rows once: decide how they are interpreted, refuse bad values, measure the columns, keep some rows.

    Args:
        tables: The data.
        likelihood: A key of ``LIKELIHOODS``, or ``"auto"``.
        keep: Indices of the rows to keep, counted over all tables, ascending.
        own_decoder: Whether a user-defined decoder decides which values are allowed.
        left_out: Indices of rows to ignore, ascending.
        update: Called with the fraction done.

    Raises:
        ValueError: A value is bad; the message names the file, row and column of the first one.
    """
    from sklearn.preprocessing import StandardScaler  # slow to import

    total = sum(table.num_rows for table in tables)
    may_need_units = likelihood == "auto" or own_decoder or _needs_units(likelihood)
    sampled = sample_numbers(total - len(left_out), tables[0].num_columns)  # counted over the rows not left out
    low, high, moments, kept, some, seen, used, checksum = None, None, StandardScaler(), [], [], 0, 0, 0
    for _, _, whole in blocks(tables):
        checksum = add_checksum(checksum, whole)
        block = np.delete(whole, rows_in(left_out, seen, len(whole)), axis=0) if len(left_out) else whole
        kept.append(whole[rows_in(keep, seen, len(whole))])
        seen += len(whole)
        update(seen / total)
        if not len(block):
            continue
        some.append(block[rows_in(sampled, used, len(block))])  # a copy: a view would keep the block in memory
        used += len(block)
        low = block.min(axis=0) if low is None else np.minimum(low, block.min(axis=0))
        high = block.max(axis=0) if high is None else np.maximum(high, block.max(axis=0))
        if may_need_units and np.isfinite([low, high]).all():  # otherwise the data are refused
            moments.partial_fit(block)
    assert low is not None
    assert high is not None
    sample = np.concatenate(some)
    reading = decide(sample, low.min(), high.max(), likelihood, own_decoder=own_decoder)
    _check(tables, np.stack([low, high]), reading.likelihood, reading.scale)
    check_density(reading, low, high, sample, tables[0].columns)
    units = None
    if may_need_units and _needs_units(reading.likelihood):
        units = units_of(np.asarray(moments.mean_), np.asarray(moments.var_), is_shared=reading.are_levels)
        units = scaled(units, reading.scale)
    return Scan(reading, units, np.concatenate(kept), checksum)


def add_checksum(before: int, rows: np.ndarray) -> int:
    """Return a checksum updated with more rows; it depends on every number and its position.

    Eight parts of the rows' bytes are added up, and only the sum goes through a CRC: a CRC of all bytes would take as
    long as the rest of the scan of a file of bytes, and SHA-256 twice as long.
    """
    stored = np.ascontiguousarray(rows).reshape(-1).view(np.uint8)
    cut = len(stored) // 64 * 64
    sums = stored[:cut].view(np.uint64).reshape(8, -1).sum(axis=0)
    return zlib.crc32(stored[cut:].data, zlib.crc32(sums.data, before))


def pick(tables: list[Table], numbers: np.ndarray) -> np.ndarray:
    """Return the rows with these indices, ascending and counted over all tables, in one pass through the files."""
    kept, seen = [], 0
    for _, _, block in blocks(tables):
        kept.append(block[rows_in(numbers, seen, len(block))])  # a copy
        seen += len(block)
    return np.concatenate(kept)


def rows_in(numbers: np.ndarray, first: int, count: int) -> np.ndarray:
    """Return those of the ascending row indices that lie in [first, first + count), counted from `first`."""
    return numbers[slice(*np.searchsorted(numbers, (first, first + count)))] - first


def _needs_units(likelihood):
    return LIKELIHOODS[likelihood].standardize


def _check(tables, extremes, likelihood, scale):
    """Search for the first bad value only if the columns' extremes show that there is one."""
    try:
        with np.errstate(invalid="ignore"):
            check_rows(extremes, likelihood, scale=scale)
    except ValueError:
        for table, first, rows in blocks(tables):
            numbers = range(first, first + len(rows))
            check_rows(rows, likelihood, scale=scale, name=table.name, row_numbers=numbers, columns=table.columns)
        raise
