"""`aevb families`: a picture of the reparameterized distributions."""

import os
from pathlib import Path

from aevb.cli.talk import InputError
from aevb.cli.waiting import waiting


def families(*, output: Path = Path("runs/families.png")) -> None:
    """Draw the reparameterized families: densities, draws and pathwise gradients.

    Args:
        output: Picture to write, a .png; its folder is made if it does not exist.
    """
    _require_writable(output)
    try:
        with waiting("Drawing the reparameterized families"):
            from aevb.report.families import draw_families

            path = draw_families(output)
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise InputError("aevb families needs Matplotlib: pip install 'aevb[demo]'") from None
    print(f"Wrote {path}")


def _require_writable(picture: Path) -> None:
    if picture.suffix != ".png":
        raise InputError(f"--output {picture}: the name of the picture must end in .png.")
    try:
        picture.parent.mkdir(parents=True, exist_ok=True)
        reason = None if os.access(picture.parent, os.W_OK) else "no permission to write"
        reason = "it is a folder" if picture.is_dir() else reason
    except OSError as error:
        reason = error.strerror
    if reason:
        raise InputError(f"--output {picture}: cannot write there ({reason}). Name a file in a folder of your own.")
