"""One pass through all rows of tables that do not fit into memory, before training."""

import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from aevb.data.checks import check_rows, scaled, units_of
from aevb.data.kinds import sample_numbers
from aevb.data.reading import Reading, check_density, decide
from aevb.data.remote_tables import fetched_ahead
from aevb.data.table import Table, blocks, rows_between
from aevb.matrices import block_rows
from aevb.models import LIKELIHOODS
from aevb.parallel import group

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
    edges: Sequence[int] = (),
    owners: Sequence[int] = (0,),
    update: Callable[[float], None] = lambda share: None,
) -> Scan:
    """Read all rows once: decide how they are interpreted, refuse bad values, measure the columns, keep some rows.

    Args:
        tables: The data.
        likelihood: A key of ``LIKELIHOODS``, or ``"auto"``.
        keep: Indices of the rows to keep, counted over all tables, ascending.
        own_decoder: Whether a user-defined decoder decides which values are allowed.
        left_out: Indices of rows to ignore, ascending.
        edges: The first rows of parts, and N; what is found is the same whichever process reads which part.
        owners: The process that reads each part.
        update: Called with the fraction of the own rows that are done.

    Raises:
        ValueError: A value is bad; the message names the file, row and column of the first one.
    """
    total = sum(table.num_rows for table in tables)
    ranges = list(pairwise(edges or (0, total)))
    may_need_units = likelihood == "auto" or own_decoder or _needs_units(likelihood)
    sampled = sample_numbers(total - len(left_out), tables[0].num_columns)  # counted over the rows not left out
    options = {"keep": keep, "sampled": sampled, "left_out": left_out, "measures": may_need_units}
    mine = sum(stop - first for (first, stop), owner in zip(ranges, owners, strict=True) if owner == group().process_id)
    advance = _counter(mine, update)
    with fetched_ahead(_of_mine(tables, ranges, owners)):
        parts = group().shared(lambda range_: scan_part(tables, *range_, **options, advance=advance), ranges, owners)
    used = [part for part in parts if part["count"]]
    low, high = np.min([part["low"] for part in used], axis=0), np.max([part["high"] for part in used], axis=0)
    sample, kept = (np.concatenate([part[name] for part in parts]) for name in ("sample", "kept"))
    reading = decide(sample, low.min(), high.max(), likelihood, own_decoder=own_decoder)
    _check(tables, parts, ranges, owners, reading)
    check_density(reading, low, high, sample, tables[0].columns)
    units = None
    if may_need_units and _needs_units(reading.likelihood):
        units = scaled(units_of(*_pooled(used), is_shared=reading.are_levels), reading.scale)
    checksums = np.array([part["checksum"] for part in parts])
    return Scan(reading, units, kept, zlib.crc32(checksums.data))


def scan_part(
    tables: list[Table],
    first: int,
    stop: int,
    *,
    keep: np.ndarray,
    sampled: np.ndarray,
    left_out: np.ndarray,
    measures: bool,
    advance: Callable[[int], None],
) -> dict[str, np.ndarray]:
    """Return what a pass through some rows finds, see :func:`scan`."""
    from sklearn.preprocessing import StandardScaler  # slow to import

    low, high, moments, kept, some, seen, checksum = None, None, StandardScaler(), [], [], first, 0
    used = before = first - int(np.searchsorted(left_out, first))
    for _, _, whole in blocks(rows_between(tables, first, stop)):
        checksum = add_checksum(checksum, whole)
        block = np.delete(whole, rows_in(left_out, seen, len(whole)), axis=0) if len(left_out) else whole
        kept.append(whole[rows_in(keep, seen, len(whole))])
        seen += len(whole)
        advance(len(whole))
        if not len(block):
            continue
        some.append(block[rows_in(sampled, used, len(block))])  # a copy: a view would keep the block in memory
        used += len(block)
        low = block.min(axis=0) if low is None else np.minimum(low, block.min(axis=0))
        high = block.max(axis=0) if high is None else np.maximum(high, block.max(axis=0))
        if measures and np.isfinite([low, high]).all():  # otherwise the data are refused
            moments.partial_fit(block)
    empty = kept[0][:0]
    found = {"count": np.array(used - before), "checksum": np.array(checksum, np.int64), "kept": np.concatenate(kept)}
    found["sample"] = np.concatenate([empty, *some])
    if low is not None and high is not None:
        found |= {"low": low, "high": high}
    if hasattr(moments, "mean_"):
        found |= {"mean": np.asarray(moments.mean_), "variance": np.asarray(moments.var_)}
    return found


def _of_mine(tables, ranges, owners):
    """Return the tables that this process reads."""
    mine = [edges for edges, owner in zip(ranges, owners, strict=True) if owner == group().process_id]
    return [table for edges in mine for table in rows_between(tables, *edges)]


def _counter(total, update):
    seen = 0

    def advance(count):
        nonlocal seen
        seen += count
        update(seen / total)

    return advance


def _pooled(parts):
    """Return mean and variance of all rows, given those of the rows of each part."""
    counts = np.array([part["count"] for part in parts], float)[:, None]
    means, variances = (np.array([part[name] for part in parts]) for name in ("mean", "variance"))
    mean = (counts * means).sum(axis=0) / counts.sum()
    return mean, (counts * (variances + np.square(means - mean))).sum(axis=0) / counts.sum()


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
    """Return the rows with these indices, ascending and counted over all tables; each process reads some of them."""
    total, num_processes = sum(table.num_rows for table in tables), group().num_processes
    ranges = list(pairwise(total * number // num_processes for number in range(num_processes + 1)))
    none = np.zeros((0, tables[0].num_columns), tables[0].dtype)

    def picked(edges):
        return {"rows": np.concatenate([none, *_picked(tables, numbers, *edges)])}

    with fetched_ahead(_of_mine(tables, ranges, range(num_processes))):
        return np.concatenate([part["rows"] for part in group().shared(picked, ranges, range(num_processes))])


def _picked(tables, numbers, first, stop):
    """Yield some of the rows between two, ascending; of a file that can be split anywhere, nothing else is read."""
    for table in rows_between(tables, first, stop):
        mine = rows_in(numbers, first, table.num_rows)
        cuts = table.cuts or tuple(dict.fromkeys(edge for number in mine for edge in (number, number + 1)))
        for start, end in pairwise(map(int, cuts)):
            wanted = rows_in(mine, start, end - start)
            for rows in table.read(start, end, block_rows(table.num_columns)) if len(wanted) else ():
                yield rows[rows_in(wanted, 0, len(rows))]
                wanted = wanted[wanted >= len(rows)] - len(rows)
        first += table.num_rows


def rows_in(numbers: np.ndarray, first: int, count: int) -> np.ndarray:
    """Return those of the ascending row indices that lie in [first, first + count), counted from `first`."""
    return numbers[slice(*np.searchsorted(numbers, (first, first + count)))] - first


def _needs_units(likelihood):
    return LIKELIHOODS[likelihood].standardize


def _check(tables, parts, ranges, owners, reading):
    """Search for the first bad value only if the columns' extremes show that there is one; its process does."""
    options = {"likelihood": reading.likelihood, "scale": reading.scale}
    for part, (first, stop), owner in zip(parts, ranges, owners, strict=True):
        try:
            with np.errstate(invalid="ignore"):
                check_rows(np.stack([part["low"], part["high"]] if part["count"] else []), **options)
        except ValueError:
            group().shared(
                lambda _, first=first, stop=stop: _search(rows_between(tables, first, stop), options), [0], [owner]
            )
            raise


def _search(tables, options):
    for table, first, rows in blocks(tables):
        check_rows(rows, **options, name=table.name, row_numbers=range(first, first + len(rows)), columns=table.columns)
    return {}
