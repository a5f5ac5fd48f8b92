"""`aevb explore`: an interactive page of a latent space."""

import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from aevb.cli.console import Console, Json, Quiet, whole
from aevb.cli.output import check_output
from aevb.cli.run_folder import open_run
from aevb.cli.waiting import waiting

NAME = "explorer.html"


def explore(
    run: Path,
    *,
    output: Path | None = None,
    rows: Annotated[int | None, Parameter(converter=whole, validator=Number(gte=1))] = None,
    open_page: Annotated[bool, Parameter(name="--open", negative="--no-open")] = True,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Create explorer.html, one file that contains the model, and open it in the browser.

    Drag through the latent plane, draw something to see q(z|x) and the bound, erase a part to see it completed. Of a
    table, set some columns to see what the model expects of the others. Of sequences, move through time: observed and
    expected values, forecasts, and the path of the states. Of a regressor, choose x and see p(y|x). The file needs no
    server and no network, so it can be shared by mail.

    Args:
        run: Folder of the run.
        output: Where the page goes; by default explorer.html in the run folder.
        rows: Number of datapoints in the page; by default up to 2,000, or 20 sequences.
        open_page: Whether to open the page.
        quiet: Print only where the results are.
        json: Print one JSON object.
    """
    console = Console(quiet, json)
    path = run / NAME if output is None else output
    if output is not None:
        check_output(output, ".html")
    opened = open_run(run, of=("VAE", "SequenceVAE", "target"))
    with waiting("Creating the page"), console.notes():
        from aevb.explorer import write_page
        from aevb.explorer.model import check_explorable
        from aevb.report.link import link_explorer

        check_explorable(opened.vae.model_)  # before the data are loaded
        write_page(path, opened.vae, opened.load_data(), name=run.resolve().name, max_rows=rows)
        if output is None:
            link_explorer(run)
    size = path.stat().st_size
    is_open = open_page and _has_screen() and _open(path)
    console.end(
        f"The interactive page is {path} ({size / 1e6:.1f} MB)", {"output": path, "bytes": size, "opened": is_open}
    )


def _has_screen():
    """Whether a person would see a browser: not in scripts, nor over ssh."""
    if not sys.stdout.isatty():
        return False
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(path):
    import webbrowser

    return webbrowser.open(path.resolve().as_uri())
