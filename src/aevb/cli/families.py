"""`aevb families`: a picture of the reparameterized distributions."""

from pathlib import Path

from aevb.cli.output import check_output
from aevb.cli.waiting import waiting


def families(*, output: Path = Path("runs/families.png")) -> None:
    """Draw the reparameterized families: densities, draws and pathwise gradients.

    Args:
        output: Picture to write, a .png file; its folder is created if necessary.
    """
    check_output(output, ".png")
    with waiting("Drawing the reparameterized families"):
        from aevb.report.families import draw_families

        path = draw_families(output)
    print(f"Wrote {path}")
