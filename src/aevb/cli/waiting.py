"""A spinner for work that takes long."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer


@contextmanager
def waiting(message: str, after: float = 2.0) -> Iterator[None]:
    """Show a spinner on the terminal while the block runs, once `after` seconds have passed.

    It goes to standard error and vanishes at the end; nothing is shown outside a terminal.
    """
    from rich.console import Console

    status = Console(stderr=True).status(message)
    timer = Timer(after, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # it may be starting the spinner at this moment
        with suppress(OSError):  # of a terminal that is gone
            status.stop()
