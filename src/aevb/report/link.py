"""The line of a report that leads to the page beside it, if there is one."""

import re
from pathlib import Path

from aevb.files import written_whole

_LINE = re.compile(r"<!-- explorer -->.*?<!-- /explorer -->", re.DOTALL)
_LINK = (
    '<p class="note"><a href="explorer.html">Hold this latent space in your hands</a>: drag through it, draw '
    "something, see what the model makes of it.</p>"
)


def explorer_line(folder: Path) -> str:
    """Return the line as HTML: a link if `explorer.html` is in the folder, else empty."""
    return f"<!-- explorer -->{_LINK if (folder / 'explorer.html').exists() else ''}<!-- /explorer -->"


def link_explorer(folder: Path) -> None:
    """Put the link into a report that was written before the page."""
    report = folder / "report.html"
    if not report.exists():
        return
    page = report.read_text(encoding="utf-8")
    with written_whole(report) as scratch:
        scratch.write_text(_LINE.sub(lambda _: explorer_line(folder), page), encoding="utf-8")
