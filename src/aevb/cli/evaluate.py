"""`aevb evaluate`: how good is a model, on held-out rows or on other data?"""

import json as json_format
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.apply import console_of
from aevb.cli.console import Json, Quiet, whole
from aevb.cli.rows import naming, read_rows
from aevb.cli.run_folder import open_run
from aevb.cli.stream import large_rows
from aevb.cli.together import ALONE, Launch
from aevb.cli.waiting import waiting


def evaluate(
    run: Path,
    data: str | None = None,
    *,
    method: Literal["laplace", "importance", "hmc", "ais", "quadrature"] | None = None,
    num_samples: Annotated[int, Parameter(converter=whole, validator=Number(gte=2))] = 1000,
    rows: Annotated[int, Parameter(converter=whole, validator=Number(gte=1))] = 1000,
    launch: Launch = ALONE,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Estimate log p(x) of data, with error bars, and compare it with the lower bound of the same rows.

    The result is added to evaluation.json in the run folder, under the names of the data and the method. Of files
    larger than memory, also at a URL, only these rows are kept. Several processes divide the rows.

    Args:
        run: Folder of the run.
        data: Name of a data set, or a file; by default the held-out rows of the run.
        method: laplace (importance sampling around the modes of each row's posterior; the default), importance (with
            the encoder; fast), hmc (the paper's, for up to 4 latent variables), ais (slow, the most reliable), or
            quadrature (for 1 or 2 latent variables).
        num_samples: Samples of z per row; for ais, the number of temperatures.
        rows: Maximum number of rows, evenly spread over the data.
        launch: How several processes are started.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    console = console_of(launch, quiet, json)
    opened = open_run(run)
    opened.vae.progress = console.shows_progress and not json
    with waiting("Reading the data"), console.notes():
        from aevb.parallel import group
        from aevb.report.measures import UNIT, log_likelihood, lower_bound, unit

        run_data = opened.load_data()
        X, num_rows = _rows(opened, run_data, data, rows)
        split = run_data.split if data is None else f"all rows of {data}"
        if num_rows > rows:
            what = f"the held-out rows ({split})" if data is None else f"the rows of {data}"
            split = f"evenly spread over {what}, {num_rows:,} in all"
    with waiting("Estimating"), console.notes(), naming(data or "held-out rows"):
        if not opened.vae.model_.is_table:  # whose rows are stored numbers, checked when they were read
            X = opened.vae._check_new_data(X, may_miss=True)
        found = {"log_likelihood": log_likelihood(opened.vae.model_, X, method, num_samples, is_divided=True)}
        if opened.vae.recognition_ is not None:
            found["lower_bound"] = lower_bound(opened.vae.model_, X)
    if not group().is_first:
        return
    origin = {
        "split": split,
        "binarization": run_data.binarization,
        "unit": unit(opened.vae.model_, run_data),
        "seed": opened.data.seed,
    }
    found = {name: numbers | origin for name, numbers in found.items()}
    path = run / "evaluation.json"
    _keep(path, f"{data or 'held out'}, {found['log_likelihood']['method']}", found)
    for name, numbers in found.items():
        error = f"± {numbers['std_error']:.2f} over rows"
        if name == "log_likelihood":
            error += f", ± {numbers['std_error_of_sampling']:.3f} from sampling z"
        console.say(f"{name.replace('_', ' '):15} {numbers['value']:10.2f}  {error}  ({numbers['estimator']})")
    if "gap" in (likelihood := found["log_likelihood"]):
        zero = " (zero within its error)" if likelihood["gap_is_within_error"] else ""
        console.say(f"{'gap':15} {likelihood['gap']:10.2f}  ± {likelihood['gap_std_error']:.2f} over rows{zero}")
    kind = "" if run_data.binarization == "none" or origin["unit"] != UNIT else f"; {run_data.binarization} data"
    console.say(f"Averages over {len(X):,} rows ({split}{kind}), in {origin['unit']}.")
    console.end(f"Results are in {path}", {"output": path, **found})


def _rows(run, run_data, data, most):
    """Return at most so many rows, evenly spread, and how many there are."""
    from aevb.data.remote import nearby
    from aevb.data.scan import pick
    from aevb.report.some_rows import places, some

    if data is None:
        return some(run_data.test, most), len(run_data.test)
    if (tables := large_rows(run, data)) is not None:
        num_rows = sum(table.num_rows for table in tables)
        return pick(tables, places(num_rows, most)), num_rows
    X = read_rows(run, str(nearby(data)))
    return some(X, most), len(X)


def _keep(path, name, found):
    """Add an evaluation to earlier ones."""
    from aevb import runs
    from aevb.files import written_whole

    try:
        before = json_format.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = {}
    provenance = {"versions": runs.versions(), "commit": runs.commit(), "machine": runs.machine()}
    with written_whole(path) as scratch:
        scratch.write_text(json_format.dumps({**before, name: {**found, **provenance}}, indent=2) + "\n", "utf-8")
