"""The line of a report that links to the interactive page in the same folder, if there is one."""

import html
import re
from pathlib import Path

from aevb.files import written_whole

_LINE = re.compile(r"<!-- explorer -->.*?<!-- /explorer -->", re.DOTALL)
_LINK = (
    '<p class="note"><a href="explorer.html">Explore this model interactively</a>: drag through its latent space, '
    "draw something or set some columns, and see what the model makes of it; of sequences, move through time.</p>"
)


def explorer_line(folder: Path, no_page: str = "") -> str:
    """Return the line as HTML: a link if `explorer.html` is in the folder, otherwise why there is no page, if given."""
    line = f'<p class="note">There is no interactive page: {html.escape(no_page)}</p>' if no_page else ""
    return f"<!-- explorer -->{_LINK if (folder / 'explorer.html').exists() else line}<!-- /explorer -->"


def link_explorer(folder: Path) -> None:
    """Add the link to a report that was written before the page."""
    report = folder / "report.html"
    if not report.exists():
        return
    page = report.read_text(encoding="utf-8")
    with written_whole(report) as scratch:
        scratch.write_text(_LINE.sub(lambda _: explorer_line(folder), page), encoding="utf-8")
