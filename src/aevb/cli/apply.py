"""`aevb sample`, `encode` and `reconstruct`: apply a model, and write the result to a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.console import Console, InputError, Json, Quiet, whole
from aevb.cli.output import check_output
from aevb.cli.rows import naming, read_named_rows
from aevb.cli.run_folder import open_run
from aevb.cli.waiting import waiting

MAX_SHOWN = 50  # images in a picture


def sample(
    run: Path,
    *,
    num_samples: Annotated[int, Parameter(converter=whole, validator=Number(gte=1))] = 100,
    mean: bool = False,
    seed: Annotated[int, Parameter(converter=whole, validator=Number(gte=0, lt=2**32))] = 0,
    output: Path | None = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Draw new rows from a model.

    Args:
        run: Folder of the run.
        num_samples: Number of rows.
        mean: Write the decoder's means instead of draws.
        seed: Random seed of the draws.
        output: A .npy, .csv or, for images, .png file; by default drawn_samples.npy in the run folder.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    opened, output = _open(run, output, "drawn_samples.npy", pictures=True)
    rows = opened.vae.sample(num_samples, mean=mean, random_state=seed)
    if output.suffix == ".png":
        _draw(output, opened, {"new": rows})
    else:
        _write(output, rows, _column_names(opened))
    what = "means" if mean else "draws"
    facts = {"rows": num_samples, "columns": rows.shape[1], "what": what, "seed": seed}
    Console(quiet, json).end(f"Wrote {num_samples:,} {what} to {output}", {"output": output, **facts})


def encode(run: Path, data: str, *, output: Path | None = None, quiet: Quiet = False, json: Json = False) -> None:
    """Encode data: write posterior means, one row of codes per row of data.

    Labels, and the names of picture files, are written beside the codes: as columns of a .csv file, or to a second file
    beside a .npy file.

    Args:
        run: Folder of the run.
        data: Name of a data set, or a file, as for `aevb fit`.
        output: A .npy or .csv file; by default codes.npy in the run folder.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    apply(
        run,
        data,
        Task("codes.npy", lambda run, X: run.vae.transform(X), _code_names, with_row_names=True),
        output,
        Console(quiet, json),
    )


def reconstruct(run: Path, data: str, *, output: Path | None = None, quiet: Quiet = False, json: Json = False) -> None:
    """Encode and decode data: write the decoder's mean at the code of each row.

    Args:
        run: Folder of the run.
        data: Name of a data set, or a file, as for `aevb fit`.
        output: A .npy, .csv or .png file (which shows the first 50 images and their reconstructions); by default
            reconstructed_rows.npy in the run folder.
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
    with_row_names: bool = False  # whether files and labels of the rows are written beside the result
    fills: bool = False  # whether missing values are filled in; a column may be missing as a whole


def apply(run: Path, data: str, task: Task, output: Path | None, console: Console) -> None:
    """Apply a task to each row of data, and write the result.

    Raises:
        ValueError: An argument is not valid; nothing has been written.
    """
    opened, output = _open(run, output, task.file, pictures=task.bands is not None)
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
        beside = output.with_name(f"{output.stem}_rows.csv")
        _write(beside, [[]] * len(result), (), names)
        message, facts, names = (
            f"{message}, and their {' and '.join(names)} to {beside}",
            {**facts, "row_names": beside},
            {},
        )
    _write(output, result, (task.names or _column_names)(opened), names)
    console.end(message, facts)


def _say_filled(rows, console):
    """Print how many values of the rows were missing."""
    import numpy as np

    is_missing = np.isnan(rows)
    num_values, num_rows = int(is_missing.sum()), int(is_missing.any(axis=1).sum())
    console.say(f"Filled in {num_values:,} missing values, in {num_rows:,} of {len(rows):,} rows.")
    return {"filled_values": num_values, "filled_rows": num_rows}


def _open(folder, output, default, pictures):
    """Open a run; refuse an output that cannot be written before any work is done."""
    endings = (".npy", ".csv", *([".png"] if pictures else []))
    if output is not None:
        check_output(output, *endings)
    run = open_run(folder)
    if output is None:
        check_output(output := folder / default, *endings)
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
            # str gives each number the digits that it takes to read the same number back.
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
    bands = {name: _enlarged(as_values(run.vae, rows[:most]), dataset.image_shape) for name, rows in bands.items()}
    above, below = bands
    return pairs(path, bands, below.capitalize(), f"below each {above}", limits=limits_of(run.vae, last), **look)


def _enlarged(rows, image_shape):
    """Return small images enlarged to the size of the others."""
    import math

    import numpy as np

    factor = math.isqrt(math.prod(image_shape) // rows.shape[1])
    if factor == 1:
        return rows
    small = rows.reshape(-1, image_shape[0] // factor, image_shape[1] // factor)
    return np.kron(small, np.ones((factor, factor))).reshape(len(rows), -1)


def _column_names(run):
    return run.load_data().dataset.columns or [f"x{number}" for number in range(run.vae.n_features_in_)]


def _code_names(run):
    return [f"z{number + 1}" for number in range(run.vae.latent_dim_)]
