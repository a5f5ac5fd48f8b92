"""A progress bar in notebooks: HTML that is replaced in place, which needs no widgets."""

import html
import sys
import time
from typing import Any

SECONDS = 0.2  # between two updates, at least


def in_notebook() -> bool:
    """Whether the code runs in a notebook that shows HTML: Jupyter, VS Code, Colab; not in a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


class NotebookBar:
    """A bar with a line of text, shown below the cell."""

    def __init__(self):
        self._handle: Any = None
        self._last = -float("inf")

    def show(self, share: float | None, text: str, *, is_last: bool = False) -> None:
        """Show the fraction done, None if unknown, and a text; updates that follow too soon are left out."""
        now = time.perf_counter()
        if not is_last and now - self._last < SECONDS:
            return
        self._last = now
        # Imported here: it is installed wherever there is a notebook.
        from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

        value = "" if share is None else f'value="{min(max(share, 0.0), 1.0):.4f}" '
        words = html.escape(text)
        page = HTML(f'<progress {value}max="1" style="width:16em" aria-label="{words}"></progress> {words}')
        if self._handle is None:
            self._handle = display(page, display_id=True)
        else:
            self._handle.update(page)
