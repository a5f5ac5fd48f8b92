"""`aevb sample`, `encode` and `reconstruct`: what a trained model does with data, into a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.run_folder import Run, open_run
from aevb.cli.talk import InputError, Json, Quiet, Talk
from aevb.cli.waiting import waiting


def sample(
    run: Path,
    *,
    num_samples: Annotated[int, Parameter(validator=Number(gte=1))] = 100,
    mean: bool = False,
    seed: Annotated[int, Parameter(validator=Number(gte=0, lt=2**32))] = 0,
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
    _apply(run, data, output, "codes.npy", lambda vae, X: vae.transform(X), _code_names, Talk(quiet, json))


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
    name = "reconstructed_rows.npy"
    _apply(run, data, output, name, lambda vae, X: vae.reconstruct(X), _column_names, Talk(quiet, json), pictures=True)


def _apply(run, data, output, default, function: Callable, names: Callable, talk: Talk, pictures=False):
    opened, output = _open(run, output, default, pictures)
    with waiting("Reading the data"):
        rows = read_rows(opened, data)
    with waiting("Computing"):
        result = function(opened.vae, rows)
    _write(output, result, names, opened, rows)
    facts = {"rows": len(result), "columns": result.shape[1]}
    talk.end(f"Wrote {len(result):,} rows of {result.shape[1]} to {output}", {"output": output, **facts})


def read_rows(run: Run, data: str):
    """Return the rows of data for the model of a run: binarized as its own were.

    Raises:
        ValueError: Naming the data and what is wrong.
    """
    from aevb.data import binarize, open_dataset

    is_table = Path(data).suffix == ".csv"
    dataset = open_dataset(data, label_column=run.data.label_column if is_table else None)
    how = run.data.binarization or "grey"
    try:
        return binarize(dataset.rows, "static" if how == "dynamic" else how, run.data.seed)
    except ValueError as error:
        raise InputError(f"{data}: {error}") from None


def _open(folder, output, default, pictures):
    """Open a run; refuse a place that cannot be written to before any work is done."""
    output = output or folder / default
    endings = [".npy", ".csv", *([".png"] if pictures else [])]
    if output.suffix not in endings:
        raise InputError(f"--output {output}: its name must end in {', '.join(endings)}.")
    run = open_run(folder)
    if output.suffix == ".png" and run.trial().dataset.image_shape is None:
        raise InputError(f"--output {output}: a .png is for images, and the rows of {run.data.source} are none.")
    if output.is_dir():
        raise InputError(f"--output {output}: it is a folder.")
    output.parent.mkdir(parents=True, exist_ok=True)
    return run, output


def _write(path: Path, rows, names, run: Run, originals=None):
    import numpy as np

    from aevb.files import written_whole

    if path.suffix == ".png":
        return _draw(path, rows, run, originals)
    with written_whole(path) as scratch, open(scratch, "wb") as file:
        if path.suffix == ".npy":
            np.save(file, rows)
        else:
            header = ",".join(names(run))
            np.savetxt(file, rows, delimiter=",", header=header, comments="", fmt="%.7g", encoding="utf-8")


def _draw(path, rows, run, originals):
    from aevb.report.images import reconstructions, sheet

    dataset = run.trial().dataset
    cmap = "gray" if dataset.light_on_dark else "gray_r"
    assert dataset.image_shape is not None
    if originals is not None:
        return reconstructions(run.vae, path, originals[:50], dataset.image_shape, cmap=cmap)
    return sheet(run.vae, path, rows, dataset.image_shape, cmap=cmap)


def _column_names(run):
    return run.trial().dataset.columns or [f"x{number}" for number in range(run.vae.n_features_in_)]


def _code_names(run):
    return [f"z{number + 1}" for number in range(run.vae.latent_dim)]
