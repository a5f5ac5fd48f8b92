"""The folder of a new run: how it is created, and what is said about it in the end."""

from pathlib import Path
from typing import Any

from aevb.cli.console import Console, InputError, shell
from aevb.runs import OWN_MODEL, new_run_folder

_FILES = {
    "model/": "the model, for aevb.load",
    "metrics.json": "the numbers above and how they were computed",
    "history.csv": "one row per epoch, or per several epochs of small data",
    "config.toml": "the settings; aevb fit --config repeats the run",
    OWN_MODEL: "your own networks",
    "checkpoints/": "the state of the run; aevb fit --resume continues it",
    "*.png, *.svg": "the pictures of the report",
    "explorer.html": "interactive page of the model",
    "report.html": "the report, with all of this",
}


def make_folder(output: Path, console: Console) -> Path:
    """Create a new folder for a run; if there is one already, say where this one is written to.

    Raises:
        InputError: It cannot be created.
    """
    try:
        folder = new_run_folder(output)
    except OSError as error:
        reason = f"cannot write there ({error.strerror}). Choose a folder you can write to."
        raise InputError(f"output folder {output}: {reason}") from None
    if folder != output:
        console.say(f"{output} already contains a run; this one is written to {folder}.")
    return folder


def say_files(console: Console, folder: Path, vae: Any) -> None:
    """Print the files of a run, and how to see its model interactively, unless it has that page already."""
    for name, what in _FILES.items():
        if any(folder.glob(name.rstrip("/").split(",")[0])):
            console.say(f"  {name:14} {what}")
    if not (folder / "explorer.html").exists() and _has_page(vae.model_):
        console.say(f"Explore the model interactively with: {shell('aevb', 'explore', folder)}")


def _has_page(model):
    from aevb.explorer import NotExplorableError
    from aevb.explorer.model import check_explorable

    try:
        check_explorable(model)
    except NotExplorableError:
        return False
    return True
