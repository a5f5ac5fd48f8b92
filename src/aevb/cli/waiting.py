"""A spinner for work that takes long."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer

from aevb.cli.console import print_line


@contextmanager
def waiting(message: str, after: float = 2.0, *, says: bool = False) -> Iterator[None]:
    """Show a spinner on the terminal while the block runs, once `after` seconds have passed.

    It goes to standard error and vanishes at the end. Outside a terminal, nothing is shown, or with `says` a line.
    """
    from rich.console import Console

    console = Console(stderr=True)
    status = console.status(message)
    is_spinner = console.is_terminal or not says
    timer = Timer(after, status.start if is_spinner else lambda: print_line(f"{message} ...", sys.stderr))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # it may be starting the spinner at this moment
        with suppress(OSError):  # of a terminal that is gone
            status.stop()
