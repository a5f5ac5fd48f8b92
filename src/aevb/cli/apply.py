"""`aevb sample`, `encode` and `reconstruct`: what a trained model does with data, into a file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.output import check_output
from aevb.cli.run_folder import Run, open_run
from aevb.cli.talk import InputError, Json, Quiet, Talk, is_about_input, whole
from aevb.cli.waiting import waiting


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
        mean: Whether to write the decoder's means instead of draws from them.
        seed: Of the draws.
        output: A .npy, .csv or .png file (which shows images); drawn_samples.npy in the run's folder if not given.
        quiet: Say only where the results are.
        json: Print one JSON object.
    """
    opened, output = _open(run, output, "drawn_samples.npy", pictures=True)
    rows = opened.vae.sample(num_samples, mean=mean, random_state=seed)
    if output.suffix == ".png":
        _draw(output, opened, {"new": rows})
    else:
        _write(output, rows, _column_names, opened)
    what = "means" if mean else "draws"
    facts = {"rows": num_samples, "columns": rows.shape[1], "what": what, "seed": seed}
    Talk(quiet, json).end(f"Wrote {num_samples:,} {what} to {output}", {"output": output, **facts})


def encode(run: Path, data: str, *, output: Path | None = None, quiet: Quiet = False, json: Json = False) -> None:
    """Write the latent codes of data: posterior means, a row for each row.

    Args:
        run: Folder of the run.
        data: Name of a data set, or a file, as for `aevb fit`.
        output: A .npy or .csv file; codes.npy in the run's folder if it is not given.
        quiet: Say only where the results are.
        json: Print one JSON object.
    """
    apply(run, data, Task("codes.npy", lambda run, X: run.vae.transform(X), _code_names), output, Talk(quiet, json))


def reconstruct(run: Path, data: str, *, output: Path | None = None, quiet: Quiet = False, json: Json = False) -> None:
    """Write what a model makes of data: the decoder's mean at the code of each row.

    Args:
        run: Folder of the run.
        data: Name of a data set, or a file, as for `aevb fit`.
        output: A .npy, .csv or .png file (which shows the first images and what became of them);
            reconstructed_rows.npy in the run's folder if not given.
        quiet: Say only where the results are.
        json: Print one JSON object.
    """
    task = Task("reconstructed_rows.npy", lambda run, X: run.vae.reconstruct(X), bands=("original", "reconstruction"))
    apply(run, data, task, output, Talk(quiet, json))


class Task(NamedTuple):
    """What a command does with rows."""

    file: str  # where the result goes if nothing is said
    compute: Callable  # of the run and the rows
    names: Callable | None = None  # of the result's columns, of the run; None for those of the data
    bands: tuple[str, str] | None = None  # names of rows and result in a picture; None if there is none
    is_raw: bool = False  # whether the rows are no data as the model knows them: they are taken as they come


def apply(run: Path, data: str, task: Task, output: Path | None, talk: Talk) -> None:
    """Do something with each row of data, and write the result.

    Raises:
        ValueError: Something given cannot be used; nothing has been written then.
    """
    opened, output = _open(run, output, task.file, pictures=task.bands is not None)
    with waiting("Reading the data"), talk.notes():
        rows = read_rows(opened, data, is_raw=task.is_raw)
    with waiting("Computing"), talk.notes(), naming(data):
        result = task.compute(opened, rows)
    if output.suffix == ".png" and task.bands:
        _draw(output, opened, dict(zip(task.bands, (rows, result), strict=True)))
    else:
        _write(output, result, task.names or _column_names, opened)
    facts = {"rows": len(result), "columns": result.shape[1]}
    talk.end(f"Wrote {len(result):,} rows of {result.shape[1]} to {output}", {"output": output, **facts})


def read_rows(run: Run, data: str, *, is_raw: bool = False):
    """Return the rows of data for the model of a run: binarized as its own were, or raw as they come.

    Raises:
        ValueError: Naming the data and what is wrong.
    """
    from aevb.data import binarize, open_dataset

    label_column = _label_column(run, data)
    with naming(data):
        _check_columns(run, data, label_column)
    dataset = open_dataset(data, label_column=label_column)
    how = "grey" if is_raw else run.data.binarization or "grey"
    with naming(data):
        rows = _in_order(dataset.rows, dataset.columns, run.columns)
        return binarize(rows, "static" if how == "dynamic" else how, run.data.seed)


def _check_columns(run, data, label_column):
    """Compare the names of the columns before the file is read: a word in a column too many is not what is wrong."""
    from aevb.data.own import columns_of
    from aevb.data.reading import places_of

    columns = [column for column in columns_of(Path(data)) if column != label_column]
    if run.columns and columns and columns != [str(number) for number in range(len(columns))]:
        places_of(run.columns, columns, "the file")


def _in_order(rows, columns, known):
    """Return rows with their columns in the order of those that the model learned from."""
    from aevb.data.reading import places_of

    return rows if not (columns and known) else rows[:, places_of(known, columns, "the file")]


@contextmanager
def naming(data: str) -> Iterator[None]:
    """Name the data in refusals of what they hold."""
    try:
        yield
    except ValueError as error:
        raise InputError(f"{data}: {error}") if is_about_input(error) else error from None


def _label_column(run, data):
    """Return the run's column of labels if these data have it too."""
    from aevb.data.own import columns_of

    columns, label = columns_of(Path(data)), run.data.label_column
    has_names = run.columns and label not in run.columns and not label.isdecimal() if label else False
    is_there = label in columns and (has_names or len(columns) > run.vae.n_features_in_)
    return label if is_there else None


def _open(folder, output, default, pictures):
    """Open a run; refuse a place that cannot be written to before any work is done."""
    endings = (".npy", ".csv", *([".png"] if pictures else []))
    if output is not None:
        check_output(output, *endings)
    run = open_run(folder)
    if output is None:
        check_output(output := folder / default, *endings)
    if output.suffix == ".png" and run.trial().dataset.image_shape is None:
        raise InputError(f"--output {output}: a .png is for images, and the rows of {run.data.source} are none.")
    return run, output


def _write(path: Path, rows, names: Callable, run: Run):
    import numpy as np

    from aevb.files import written_whole

    with written_whole(path) as scratch, open(scratch, "wb") as file:
        if path.suffix == ".npy":
            np.save(file, rows)
        else:  # each number in as many digits as it takes to have it again
            lines = (",".join(map(str, row)) for row in rows)
            file.writelines(f"{line}\n".encode() for line in (",".join(names(run)), *lines))


def _draw(path, run, bands, most=50):
    """Draw the first rows as images, each version below the last."""
    from aevb.report.images import as_values, limits_of, pairs, sheet

    dataset = run.trial().dataset
    assert dataset.image_shape is not None
    look = {"image_shape": dataset.image_shape, "cmap": "gray" if dataset.light_on_dark else "gray_r"}
    last = list(bands.values())[-1]
    if len(bands) == 1:
        return sheet(run.vae, path, last, **look)
    bands = {name: _enlarged(as_values(run.vae, rows[:most]), dataset.image_shape) for name, rows in bands.items()}
    above, below = bands
    return pairs(path, bands, below.capitalize(), f"below each {above}", limits=limits_of(run.vae, last), **look)


def _enlarged(rows, image_shape):
    """Return small images with pixels as large as they stand for."""
    import math

    import numpy as np

    factor = math.isqrt(math.prod(image_shape) // rows.shape[1])
    if factor == 1:
        return rows
    small = rows.reshape(-1, image_shape[0] // factor, image_shape[1] // factor)
    return np.kron(small, np.ones((factor, factor))).reshape(len(rows), -1)


def _column_names(run):
    return run.trial().dataset.columns or [f"x{number}" for number in range(run.vae.n_features_in_)]


def _code_names(run):
    return [f"z{number + 1}" for number in range(run.vae.latent_dim)]
