"""`aevb report` and `aevb plot`: measure and draw a run again."""

from pathlib import Path

from aevb.cli.run_folder import open_run
from aevb.cli.talk import Json, Quiet, Talk
from aevb.cli.waiting import waiting


def report(run: Path, *, quiet: Quiet = False, json: Json = False) -> None:
    """Write the report of a run again, with its numbers and pictures: after an update, or after Ctrl-C.

    Args:
        run: Folder of the run.
        quiet: Say only where the results are.
        json: Print one JSON object.
    """
    opened = open_run(run)
    with waiting("Measuring and drawing"):
        from aevb import runs
        from aevb.cli.learn import write_results

        runs.write_history(run, opened.vae.history_)
        metrics = write_results(run, opened.vae, opened.trial(), opened.data.seed, opened.command)
    path = run / "report.html"
    Talk(quiet, json).end(f"The report is {path}", {"output": path, **metrics})


def plot(run: Path, *, quiet: Quiet = False, json: Json = False) -> None:
    """Draw the pictures of a run again, as PNG and SVG.

    Args:
        run: Folder of the run.
        quiet: Say only where the results are.
        json: Print one JSON object.
    """
    opened = open_run(run)
    talk = Talk(quiet, json)
    with waiting("Drawing"):
        from aevb.report.pictures import PICTURES, draw_pictures

        names = draw_pictures(opened.vae, opened.trial(), run, opened.data.seed)
    for name in names:
        talk.say(f"  {name + '.png':32} {PICTURES[name].heading}")
    talk.end(f"The pictures are in {run}", {"output": run, "pictures": [f"{name}.png" for name in names]})
