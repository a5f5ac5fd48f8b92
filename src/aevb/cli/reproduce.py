"""`aevb reproduce`: the paper's figures and claims, and our own experiments on tables and documents."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.console import Console, Json, Quiet, whole
from aevb.cli.output import check_folder
from aevb.cli.waiting import waiting


def reproduce(
    what: Literal[
        "figure-2",
        "figure-3",
        "figure-4",
        "figure-5",
        "claims",
        "small-tables",
        "imputation",
        "miwae",
        "synthetic",
        "anomalies",
        "topics",
        "posteriors",
        "music",
        "forecasts",
        "semi-supervised",
        "conditional",
        "regression",
        "likelihoods",
        "ladder",
        "convolutions",
        "all",
    ],
    /,
    *,
    profile: Literal["quick", "standard", "paper"] = "quick",
    output: Path = Path("runs/reproduce"),
    seed: Annotated[int, Parameter(converter=whole, validator=Number(gte=0, lt=2**31))] = 0,
    processes: Annotated[int | None, Parameter(converter=whole, validator=Number(gte=1))] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Reproduce a figure of the paper, its claims with a verdict on each, or a comparison with others on tables.

    Comparisons: `small-tables` (log p(x) with default settings), `imputation` (missing entries), `miwae` (the same, as
    published), `synthetic` (rows made by the model), `anomalies`, `topics` (of documents), `posteriors`
    (`fit_posterior` on models with known posteriors), `music` (Bach's chorales), `forecasts` (of single series),
    `semi-supervised` (MNIST with few labels), `conditional` (MNIST given its labels), `regression` (densities of
    targets), `likelihoods` (importance-weighted auto-encoders of MNIST), `ladder` (which levels of a hierarchy are
    used) and `convolutions` (beside an MLP of the same computing time).

    Press Ctrl-C at any time: the same command resumes.

    Args:
        what: The figure or table.
        profile: `quick` takes minutes, `standard` up to two hours per figure on two cores, `paper` uses the paper's
            number of samples.
        output: Folder for the results; each profile has its own subfolder.
        seed: Random seed.
        processes: Number of models trained at the same time; one per core by default.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    check_folder(output)
    console = Console(quiet, json)
    with waiting("Loading JAX"):
        from aevb.experiments.progress import ProgressDisplay
        from aevb.experiments.reproduction import PARTS, estimate, reproduce_part

    folder = output / profile if seed == 0 else output / f"{profile}-seed-{seed}"
    parts = list(PARTS) if what == "all" else [what]
    files = []
    with waiting("Measuring this machine"):
        plan = estimate(parts, profile, folder, seed, processes)
    console.say(plan.summary)
    for part in parts:
        with ProgressDisplay(console.shows_progress, plan.core_seconds[part], part) as display, console.notes():
            files += reproduce_part(part, profile, folder, seed=seed, watch=display, processes=processes)
    lines = [f"  {path}" for path in files]
    console.end("\n".join(["Done. Look at:", *lines]), {"folder": str(folder), "files": [str(path) for path in files]})
