"""Apply a model to data larger than memory: rows are read, computed and written in pieces, by each process its part."""

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aevb.cli.console import InputError
from aevb.cli.run_folder import Run

if TYPE_CHECKING:
    from aevb.data.table import Table

DRAWN = ("static", "dynamic")  # kinds of binarization that draw, for all rows together


def large_rows(run: Run, data: str, *, is_raw: bool = False) -> "list[Table] | None":
    """Return data that do not fit into memory as tables with the columns of a run, in its order; None for other data.

    Raises:
        ValueError: Their columns are not those of the run, or they would have to be binarized at random.
    """
    from aevb.data.reading import places_of
    from aevb.data.run_data import large_tables

    if run.has_frames or (tables := large_tables(data, pictures=run.data.pictures)) is None:
        return None
    if run.data.binarization in DRAWN and not is_raw:
        raise InputError(
            f"{data} is larger than memory, and the run learned from binary draws. Binarize it beforehand."
        )
    names = tables[0].columns
    places = places_of(run.columns, names, "the file") if names and run.columns else None
    return [_prepared(table, places, run, is_raw) for table in tables]


def _prepared(table, places, run, is_raw):
    """Return a table as the model takes it: in the order of its columns, and binarized by a threshold if it is."""
    from aevb.data import binarize

    how = "grey" if is_raw else run.data.binarization or "grey"

    def read(start, stop, size):
        for rows in table.read(start, stop, size):
            yield binarize(rows if places is None else rows[:, places], how, run.data.seed)

    return table._replace(read=read)


def write_parts(
    tables: "list[Table]", compute: Callable, output: Path, columns: Sequence[str]
) -> tuple[list[Path], Any]:
    """Write a function of rows, computed in pieces: to one file, or a file for each process, in the order of the rows.

    A file is complete or not there.

    Args:
        tables: The rows.
        compute: Function of some rows (n, D) that returns rows (n, D').
        output: A .npy or .csv file; processes add their numbers to its name.
        columns: Names of the D' columns.

    Returns:
        The files, and the shape of all rows in them.
    """
    import numpy as np

    from aevb.data.remote_tables import fetched_ahead
    from aevb.data.table import blocks, rows_between
    from aevb.parallel import group

    num_rows, k = sum(table.num_rows for table in tables), group().num_processes
    files = [output.with_name(f"{output.stem}-{n:05}-of-{k:05}{output.suffix}") if k > 1 else output for n in range(k)]

    def write(process):
        mine = rows_between(tables, num_rows * process // k, num_rows * (process + 1) // k)
        count = sum(table.num_rows for table in mine)
        with fetched_ahead(mine), _writer(files[process], count, columns) as add:
            for _, _, rows in blocks(mine):
                add(compute(rows))
        return {"shape": np.array([count, len(columns)])}

    shapes = [part["shape"] for part in group().shared(write, range(k), range(k))]
    return files, (int(sum(shape[0] for shape in shapes)), len(columns))


@contextmanager
def _writer(path, num_rows, columns) -> Iterator[Callable]:
    """Yield a function that adds rows to a file, which replaces one at `path` at the end."""
    import numpy as np

    from aevb.files import written_whole

    written, is_array = 0, path.suffix == ".npy"
    options: dict[str, Any] = {"mode": "wb"} if is_array else {"mode": "w", "newline": "", "encoding": "utf-8"}
    with written_whole(path) as scratch, open(scratch, **options) as file:
        writer: Any = None if is_array else csv.writer(file, lineterminator="\n")

        def add(rows):
            nonlocal written
            if not written:
                shape = {"shape": (num_rows, rows.shape[1]), "fortran_order": False}
                if is_array:
                    np.lib.format.write_array_header_1_0(file, {"descr": rows.dtype.str, **shape})
                else:
                    writer.writerow(columns)
            written += len(rows)
            file.write(np.ascontiguousarray(rows).data) if is_array else writer.writerows(rows)

        yield add
        assert written == num_rows, f"{written:,} of {num_rows:,} rows"
