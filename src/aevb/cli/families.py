"""`aevb families`: a picture of the reparameterized distributions."""

from pathlib import Path

from aevb.cli.console import InputError
from aevb.cli.output import check_output
from aevb.cli.waiting import waiting


def families(*, output: Path = Path("runs/families.png")) -> None:
    """Draw the reparameterized families: densities, draws and pathwise gradients.

    Args:
        output: Picture to write, a .png file; its folder is created if necessary.
    """
    check_output(output, ".png")
    try:
        with waiting("Drawing the reparameterized families"):
            from aevb.report.families import draw_families

            path = draw_families(output)
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise InputError("aevb families needs Matplotlib: pip install 'aevb[demo]'") from None
    print(f"Wrote {path}")
