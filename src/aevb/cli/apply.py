"""`aevb sample`, `encode` and `reconstruct`: apply a model, and write the result to a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.console import Console, InputError, Json, Quiet, whole
from aevb.cli.given import read_conditions
from aevb.cli.output import check_output
from aevb.cli.rows import naming, read_named_rows
from aevb.cli.run_folder import Run, open_run
from aevb.cli.stream import large_rows, write_parts
from aevb.cli.table_rows import read_table_rows, write_table
from aevb.cli.together import ALONE, Launch
from aevb.cli.waiting import waiting

MAX_SHOWN = 50  # images in a picture


def sample(
    run: Path,
    *,
    rows: Annotated[int, Parameter(name=("--rows", "--num-samples"), converter=whole, validator=Number(gte=1))] = 100,
    given: Annotated[list[str] | None, Parameter(negative=())] = None,
    mean: bool = False,
    seed: Annotated[int, Parameter(converter=whole, validator=Number(gte=0, lt=2**32))] = 0,
    output: Path | None = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Draw new rows from a model.

    Args:
        run: Folder of the run.
        rows: Number of rows.
        given: For tables, what is known of a column: sex=F, several labels as sex=F,M, or a range of numbers or dates
            as age=30:40, age=30: or age=:40; may be repeated. The other columns are drawn given these.
        mean: Write the decoder's means instead of draws.
        seed: Random seed of the draws.
        output: A .npy, .csv or, for images, .png file; by default drawn_samples.npy in the run folder. For tables with
            columns of different kinds a .csv or .parquet file, by default drawn_samples.csv.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    console = Console(quiet, json)
    opened, output = _open(run, output, "drawn_samples.npy", pictures=True)
    conditions = _conditions(opened, given)
    with waiting("Drawing"), console.notes():
        drawn = opened.vae.sample(rows, given=conditions, mean=mean, random_state=seed)
    if output.suffix == ".png":
        _draw(output, opened, {"new": drawn})
    elif opened.has_frames:
        write_table(output, drawn)
    else:
        _write(output, drawn, _column_names(opened))
    what = "means" if mean else "draws"
    facts = {"rows": rows, "columns": drawn.shape[1], "what": what, "seed": seed}
    facts |= {"given": given} if given else {}
    console.end(f"Wrote {rows:,} {what} to {output}", {"output": output, **facts})


def _conditions(run, given):
    if not given:
        return None
    if not run.vae.model_.is_table:
        raise InputError(
            f"--given: the columns of {run.data.source} have no kinds of their own. It needs a run on a table."
        )
    return read_conditions(run.vae.model_.format, given)


def encode(
    run: Path,
    data: str,
    *,
    output: Path | None = None,
    launch: Launch = ALONE,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Encode data: write posterior means, one row of codes per row of data.

    Labels, and the names of picture files, are written with the codes: as columns of a .csv file, or to a second file
    next to a .npy file. Files larger than memory, also at a URL, are read and written in pieces, without labels and
    names; each of several processes writes a file of its own, whose names are in the order of the rows.

    Args:
        run: Folder of the run.
        data: Name of a data set, or a file, as for `aevb fit`.
        output: A .npy or .csv file; by default codes.npy in the run folder, or codes.csv for tables.
        launch: How several processes are started.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    apply(
        run,
        data,
        Task("codes.npy", lambda run, X: run.vae.transform(X), _code_names, with_row_names=True),
        output,
        console_of(launch, quiet, json),
    )


def console_of(launch: Launch, quiet: bool, json: bool) -> Console:
    """Connect this process with others, if there are any; return how it prints: the first one only."""
    is_first = launch.start()
    return Console(quiet or not is_first, json and is_first)


def reconstruct(run: Path, data: str, *, output: Path | None = None, quiet: Quiet = False, json: Json = False) -> None:
    """Encode and decode data: write the decoder's mean at the code of each row.

    Args:
        run: Folder of the run.
        data: Name of a data set, or a file, as for `aevb fit`.
        output: A .npy, .csv or .png file (which shows the first 50 images and their reconstructions); by default
            reconstructed_rows.npy in the run folder. For tables a .csv or .parquet file.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    task = Task("reconstructed_rows.npy", lambda run, X: run.vae.reconstruct(X), bands=("original", "reconstruction"))
    apply(run, data, task, output, Console(quiet, json))


class Task(NamedTuple):
    """What a command does with rows."""

    file: str  # default name of the output file
    compute: Callable  # of the run and the rows
    names: Callable | None = None  # of the result's columns, given the run; None for those of the data
    bands: tuple[str, str] | None = None  # names of rows and result in a picture; None if there is none
    is_raw: bool = False  # whether the rows are used as they are, without binarization
    with_row_names: bool = False  # whether files and labels of the rows are written with the result
    fills: bool = False  # whether missing values are filled in; a column may be missing as a whole
    suits_tables: bool = True  # whether it suits tables with columns of different kinds


def apply(run: Path, data: str, task: Task, output: Path | None, console: Console) -> None:
    """Apply a task to each row of data, and write the result.

    Raises:
        ValueError: An argument is not valid; nothing has been written.
    """
    opened, output = _open(run, output, task.file, pictures=task.bands is not None)
    if opened.vae.model_.is_table and not task.suits_tables:
        raise InputError(f"{run} is a run on a table. This command is for images and for rows of numbers.")
    with waiting("Reading the data"):
        from aevb.data.remote import nearby
        from aevb.parallel import ALONE as ONE_PROCESS
        from aevb.parallel import group, work_as

        if (tables := large_rows(opened, data, is_raw=task.is_raw)) is not None:
            return _apply_to_large(opened, tables, task, output, console)
        data = str(nearby(data))
    if not group().is_first:
        return None
    work_as(ONE_PROCESS)  # the others have ended: nothing may wait for them, such as for headers at a URL
    if opened.has_frames:
        return _apply_to_table(opened, data, task, output, console)
    with waiting("Reading the data"), console.notes():
        rows, row_names = read_named_rows(opened, data, is_raw=task.is_raw, may_lack=task.fills)
    with waiting("Computing"), console.notes(), naming(data):
        result = task.compute(opened, rows)
    filled = _say_filled(rows, console) if task.fills else {}
    if output.suffix == ".png" and task.bands:
        _draw(output, opened, dict(zip(task.bands, (rows, result), strict=True)))
        shown = min(len(result), MAX_SHOWN)
        what = f"{shown:,}" if shown == len(result) else f"the first {shown:,} of {len(result):,}"
        above, below = task.bands
        facts = {"output": output, "rows": len(result), "rows_shown": shown, **filled}
        return console.end(f"Drew {what} rows ({above} above {below}) to {output}", facts)
    names = row_names if task.with_row_names else {}
    message = f"Wrote {len(result):,} rows of {result.shape[1]} to {output}"
    facts = {"output": output, "rows": len(result), "columns": result.shape[1], **filled}
    if names and output.suffix == ".npy":
        names_file = output.with_name(f"{output.stem}_rows.csv")
        _write(names_file, [[]] * len(result), (), names)
        message, facts, names = (
            f"{message}, and their {' and '.join(names)} to {names_file}",
            {**facts, "row_names": names_file},
            {},
        )
    _write(output, result, (task.names or _column_names)(opened), names)
    console.end(message, facts)


def _apply_to_large(run, tables, task, output, console):
    """Apply a task to rows that do not fit into memory."""
    if output.suffix == ".png":
        raise InputError(f"--output {output}: a picture shows rows in memory, and these are more. Give a .npy file.")
    with waiting("Computing"), console.notes():
        names = (task.names or _column_names)(run)
        files, (num_rows, num_columns) = write_parts(tables, lambda X: task.compute(run, X), output, names)
    where = files[0] if len(files) == 1 else f"{len(files)} files, {files[0]} to {files[-1].name}"
    facts = {"output": files[0] if len(files) == 1 else files, "rows": num_rows, "columns": num_columns}
    console.end(f"Wrote {num_rows:,} rows of {num_columns} to {where}", facts)


def _apply_to_table(run, data, task, output, console):
    """Apply a task to the rows of a table; what is filled in is written with all columns of the file."""
    from aevb.data.frames.parts import with_columns

    with waiting("Reading the data"), console.notes():
        rows = read_table_rows(run, data, may_lack=task.fills)
    with waiting("Computing"), console.notes(), naming(data):
        result = task.compute(run, rows.known)
    filled = _say_filled(run.vae.model_.format.encode(rows.known), console) if task.fills else {}
    if task.names is not None:
        _write(output, result, task.names(run), rows.names if output.suffix == ".csv" else {})
    else:
        result = with_columns(rows.whole, result) if task.fills else result
        write_table(output, result)
    num_rows, num_columns = result.shape
    facts = {"output": output, "rows": num_rows, "columns": num_columns, **filled}
    console.end(f"Wrote {num_rows:,} rows of {num_columns} to {output}", facts)


def _say_filled(rows, console):
    """Print how many values of the rows were missing."""
    import numpy as np

    is_missing = np.isnan(rows)
    num_values, num_rows = int(is_missing.sum()), int(is_missing.any(axis=1).sum())
    console.say(f"Filled in {num_values:,} missing values, in {num_rows:,} of {len(rows):,} rows.")
    return {"filled_values": num_values, "filled_rows": num_rows}


def _open(folder: Path, output: Path | None, default: str, pictures: bool) -> tuple[Run, Path]:
    """Open a run; refuse an output that cannot be written before any work is done."""
    of_rows, of_tables = (".npy", ".csv", *([".png"] if pictures else [])), (".csv", ".parquet" if pictures else ".npy")
    if output is not None:
        check_output(output, *dict.fromkeys((*of_rows, *of_tables)))
    run = open_run(folder)
    place = folder / (Path(default).with_suffix(".csv") if run.has_frames else default) if output is None else output
    check_output(output := place, *(of_tables if run.has_frames else of_rows))
    if output.suffix == ".png" and run.load_data().dataset.image_shape is None:
        raise InputError(f"--output {output}: a .png is for images, and the rows of {run.data.source} are not images.")
    return run, output


def _write(path: Path, rows, columns, row_names=None):
    """Write rows (n, D) and, into a .csv file, columns of names before them."""
    import csv

    import numpy as np

    from aevb.files import written_whole

    with written_whole(path) as scratch:
        if path.suffix == ".npy":
            with open(scratch, "wb") as file:
                return np.save(file, rows)
        with open(scratch, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            names = row_names or {}
            writer.writerow([*names, *columns])
            # str gives each number enough digits to read the same number back.
            writer.writerows([*(each[number] for each in names.values()), *row] for number, row in enumerate(rows))


def _draw(path, run, bands, most=MAX_SHOWN):
    """Draw the first rows as images, all versions of an image below each other."""
    from aevb.report.images import as_values, limits_of, pairs, sheet

    dataset = run.load_data().dataset
    assert dataset.image_shape is not None
    look = {"image_shape": dataset.image_shape, "cmap": "gray" if dataset.light_on_dark else "gray_r"}
    last = list(bands.values())[-1]
    if len(bands) == 1:
        return sheet(run.vae, path, last, **look)
    model = run.vae.model_
    bands = {name: _enlarged(as_values(model, rows[:most]), dataset.image_shape) for name, rows in bands.items()}
    above, below = bands
    return pairs(path, bands, below.capitalize(), f"below each {above}", limits=limits_of(model, last), **look)


def _enlarged(rows, image_shape):
    """Return small images enlarged to the size of the others."""
    import math

    factor = math.isqrt(math.prod(image_shape) // rows.shape[1])
    if factor == 1:
        return rows
    small = rows.reshape(-1, image_shape[0] // factor, image_shape[1] // factor, *image_shape[2:])
    return small.repeat(factor, axis=1).repeat(factor, axis=2).reshape(len(rows), -1)


def _column_names(run):
    return run.load_data().dataset.columns or [f"x{number}" for number in range(run.vae.n_features_in_)]


def _code_names(run):
    return [f"z{number + 1}" for number in range(run.vae.latent_dim_)]
