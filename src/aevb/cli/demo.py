"""`aevb demo`: a first picture, without data."""

import os
from pathlib import Path

from aevb.cli.waiting import waiting


def demo(*, output: Path = Path("runs")) -> None:
    """Draw the reparameterized families.

    Args:
        output: Folder for the picture; made if it does not exist.
    """
    _require_writable(output)
    try:
        with waiting("Drawing the reparameterized families"):
            from aevb.report.families import draw_families

            path = draw_families(output / "families.png")
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise SystemExit("aevb demo needs Matplotlib: pip install 'aevb[demo]'") from None
    print(f"Wrote {path}")


def _require_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        reason = None if os.access(folder, os.W_OK) else "no permission to write"
    except OSError as error:
        reason = error.strerror
    if reason:
        raise SystemExit(f"--output {folder}: cannot write there ({reason}). Name a folder that can be written.")
