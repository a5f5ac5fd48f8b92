"""Shards at a URL as tables: their headers are read first, and each is copied when it is read, or a little earlier.

A process copies only the shards that it reads.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from aevb.data.parquet_file import parquet_table
from aevb.data.remote import Shard, is_url, nearby, shards_at
from aevb.data.table import Table
from aevb.data.tables import FORMATS, DataFileError, check_alike, ending_of, memmap_table, open_tables
from aevb.parallel import group


def tables_at(source: Any) -> list[Table]:
    """Return the tables of a path or URL: shards at a URL stay there until they are read, if their kind allows it."""
    found = remote_tables(source) if is_url(source) else None
    return open_tables(nearby(source)) if found is None else found


def remote_tables(url: str) -> list[Table] | None:
    """Return the shards at a URL as tables; None if one of them must be copied to know what it contains.

    Processes divide the headers among each other.

    Raises:
        DataFileError: A shard cannot be read; the message names it.
    """
    shards = shards_at(url)
    if not all(ending_of(Path(shard.name)) in _HEADS for shard in shards):
        return None
    group().verify(lambda: {f"files at {url}": " ".join(shard.name for shard in shards)})
    owners = [number % group().num_processes for number in range(len(shards))]
    facts = group().shared(lambda shard: {"facts": np.array(json.dumps(_facts(shard)))}, shards, owners)
    tables = [_table(shard, json.loads(str(found["facts"]))) for shard, found in zip(shards, facts, strict=True)]
    for table in tables[1:]:
        check_alike(tables[0], table)
    return tables


def _facts(shard):
    """Return what a shard's header says, as text."""
    table = shard.head(lambda file: _HEADS[ending_of(Path(shard.name))](file, shard.url))
    return {**table._asdict(), "dtype": table.dtype.str, "read": None, "fetch": None}


def _of_npy(file, name):
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return memmap_table(np.broadcast_to(np.zeros((), dtype), shape), name)


_HEADS = {".npy": _of_npy, ".parquet": lambda file, name: parquet_table(name, file=file)}


def _table(shard: Shard, facts: dict[str, Any]) -> Table:
    @cache
    def here():
        path = shard.copied()
        try:
            return FORMATS[ending_of(path)](path)
        except DataFileError as error:
            raise DataFileError(f"{shard.url}: {error}") from error

    def read(start, stop, size):
        return here().read(start, stop, size)

    known: dict[str, Any] = {
        name: value if not isinstance(value, list) else tuple(value) for name, value in facts.items()
    }
    return Table(**known | {"dtype": np.dtype(facts["dtype"]), "read": read, "fetch": here})


@contextmanager
def fetched_ahead(tables: list[Table]) -> Iterator[None]:
    """Bring tables near in a thread, in this order, while they are read; errors are left to the reader."""
    fetches = [table.fetch for table in tables if table.fetch is not None]
    is_over = threading.Event()

    def run():
        for fetch in fetches:
            if is_over.is_set():
                return
            with suppress(Exception):
                fetch()

    if fetches:
        threading.Thread(target=run, name="aevb-fetch", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()
