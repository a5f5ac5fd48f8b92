"""What ends a command from outside: Ctrl-C, a polite kill, a closed terminal. What was learned is kept."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


def end_as_by_ctrl_c() -> None:
    """Let a polite kill and a closed terminal end a command as Ctrl-C does."""

    def interrupt(number, _):
        signal.signal(number, signal.SIG_IGN)  # once is enough: what is kept takes a moment to write
        if number == getattr(signal, "SIGHUP", None):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(nowhere, stream)  # nobody reads any more
        raise KeyboardInterrupt

    for name in ("SIGTERM", "SIGHUP"):  # Windows has not both
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) == signal.SIG_DFL:
            signal.signal(getattr(signal, name), interrupt)


@contextmanager
def one_interruption() -> Iterator[None]:
    """Let the first Ctrl-C interrupt what is done in the block; a second one waits for the block's end.

    Who is impatient presses it twice, and the second one shall not hit what the first one made us save.
    """
    count = 0

    def interrupt(*_):
        nonlocal count
        count += 1
        if count == 1:
            raise KeyboardInterrupt

    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not so in the background
    if is_ours:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if count > 1:
        raise KeyboardInterrupt
