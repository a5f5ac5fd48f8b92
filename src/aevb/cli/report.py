"""`aevb report` and `aevb plot`: rewrite the results of a run."""

from pathlib import Path

from aevb.cli.console import Console, Json, Quiet
from aevb.cli.run_folder import open_run
from aevb.cli.waiting import waiting


def report(run: Path, *, quiet: Quiet = False, json: Json = False) -> None:
    """Rewrite the report of a run with its numbers and pictures, for example after an update or Ctrl-C.

    Args:
        run: Folder of the run.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    console = Console(quiet, json)
    opened = open_run(run, of=("VAE", "SequenceVAE", "target"))
    with waiting("Measuring and drawing"), console.notes():
        from aevb import runs
        from aevb.report.report import write_results

        runs.write_history(run, opened.vae.history_)
        metrics = write_results(run, opened.vae, opened.load_data(), opened.data.seed, command=opened.command)
    path = run / "report.html"
    for warning in metrics["warnings"]:
        console.warn(warning)
    console.end(f"The report is {path}", {"output": path, **metrics})


def plot(run: Path, *, quiet: Quiet = False, json: Json = False) -> None:
    """Redraw the pictures of a run, as PNG and SVG.

    Args:
        run: Folder of the run.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    opened = open_run(run, of=("VAE", "SequenceVAE", "target"))
    console = Console(quiet, json)
    with waiting("Drawing"), console.notes():
        from aevb.report.pictures import draw_pictures, pictures_of

        data = opened.load_data()
        names = draw_pictures(opened.vae.model_, data, run, opened.data.seed)
        known = pictures_of(data)
    for name in names:
        console.say(f"  {name + '.png':32} {known[name].heading}")
    console.end(f"The pictures are in {run}", {"output": run, "pictures": [f"{name}.png" for name in names]})
