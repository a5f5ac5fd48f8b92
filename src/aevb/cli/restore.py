"""`aevb denoise`, `inpaint` and `super-resolve`: clean, complete or enlarge data."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.apply import Task, apply, console_of
from aevb.cli.console import Console, InputError, Json, Quiet, whole
from aevb.cli.together import ALONE, Launch

Method = Annotated[
    Literal["hmc", "importance", "gibbs", "metropolis-within-gibbs"],
    Parameter(help="How z is sampled given the observed values: see aevb.VAE.impute."),
]


def denoise(
    run: Path,
    data: str,
    *,
    noise: Literal["gaussian", "salt-and-pepper", "masking"] = "gaussian",
    level: float | None = None,
    method: Method = "hmc",
    output: Path | None = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write the posterior expectation of the clean rows, given noisy ones.

    Args:
        run: Folder of the run.
        data: A file with noisy rows.
        noise: Kind of noise: gaussian (added), salt-and-pepper (values replaced by the extremes), masking (by 0).
        level: Standard deviation of Gaussian noise, in the units of the data (estimated if not given); otherwise the
            fraction of values that were replaced.
        method: How z is sampled.
        output: A .npy, .csv or .png file; by default denoised_rows.npy in the run folder.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    options: dict[str, Any] = {"noise": noise, "level": level, "method": method}
    bands = ("noisy image", "denoised image")
    task = Task(
        "denoised_rows.npy", lambda run, X: run.vae.denoise(X, **options), bands=bands, is_raw=True, suits_tables=False
    )
    apply(run, data, task, output, Console(quiet, json))


def inpaint(
    run: Path,
    data: str,
    *,
    method: Method | None = None,
    output: Path | None = None,
    launch: Launch = ALONE,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Fill in missing values (NaN, or empty cells of a .csv file) with their expectation given the rest of the row.

    Labels and names of picture files are written with the rows, as by `aevb encode`. In tables with columns of
    different kinds, labels are filled in with the most probable one, and all columns of the file are written. Files
    larger than memory are filled in as `aevb encode` encodes them.

    Args:
        run: Folder of the run.
        data: A file with rows that have missing values. A column of the model that it lacks is filled in as a whole.
        method: How z is sampled: hmc by default; tables with columns of different kinds always use importance.
        output: A .npy, .csv or .png file; by default filled_rows.npy in the run folder. For tables a .csv or .parquet
            file, by default filled_rows.csv.
        launch: How several processes are started.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    bands = ("image with holes", "completed image")

    def compute(run, X):
        if not run.vae.model_.is_table:
            return run.vae.impute(X, method=method or "hmc")
        if method not in (None, "importance"):
            raise InputError(f"--method {method}: missing entries of tables are filled in by importance sampling.")
        return run.vae.impute(X)

    task = Task("filled_rows.npy", compute, bands=bands, is_raw=True, with_row_names=True, fills=True)
    apply(run, data, task, output, console_of(launch, quiet, json))


def super_resolve(
    run: Path,
    data: str,
    *,
    factor: Annotated[int, Parameter(converter=whole, validator=Number(gte=1))],
    method: Method = "hmc",
    output: Path | None = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write the posterior expectation of images, given small ones whose pixels are averages over squares.

    Args:
        run: Folder of the run.
        data: A file with the small images.
        factor: Side of a square in pixels.
        method: How z is sampled.
        output: A .npy, .csv or .png file; by default resolved_rows.npy in the run folder.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """

    def compute(run, X):
        return run.vae.super_resolve(X, factor, image_shape=run.load_data().dataset.image_shape, method=method)

    task = Task("resolved_rows.npy", compute, bands=("small image", "resolved image"), is_raw=True, suits_tables=False)
    apply(run, data, task, output, Console(quiet, json))
