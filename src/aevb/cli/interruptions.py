"""What ends a command from outside: Ctrl-C, a polite kill, a closed terminal. What was learned is kept."""

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def end_as_by_ctrl_c() -> None:
    """Let a polite kill and a closed terminal end a command as Ctrl-C does."""

    def interrupt(number, _):
        signal.signal(number, signal.SIG_IGN)  # once is enough: what is kept takes a moment to write
        _hear_of_a_closed_terminal(number)
        raise KeyboardInterrupt

    for number in _SIGNALS:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, interrupt)


PATIENCE = 5.0  # seconds after which a second signal interrupts again: the first one may have been lost in a callback


class Interruptions:
    """Signals that ask for the end: the first one interrupts, unless something is just being kept; others wait."""

    def __init__(self):
        self._last, self._is_keeping, self.one_waits = -math.inf, False, False

    def __call__(self, number, frame):
        """Hear a signal."""
        _hear_of_a_closed_terminal(number)
        if frame is not None and frame.f_code.co_name == "_xla_gc_callback":  # of JAX: what it raises, Python ignores
            threading.Timer(0.01, os.kill, (os.getpid(), number)).start()
            return
        if time.monotonic() - self._last > PATIENCE and not self._is_keeping:
            self._last = time.monotonic()
            raise KeyboardInterrupt
        self.one_waits = True

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Let all signals wait while something is kept."""
        self._is_keeping = True
        try:
            yield
        finally:
            self._is_keeping = False


@contextmanager
def one_interruption() -> Iterator[Interruptions]:
    """Let the first signal interrupt what is done in the block; those that follow soon wait for the block's end.

    Who is impatient presses Ctrl-C twice, and a machine that shuts down sends several signals: the second one shall not
    hit what the first one made us save.
    """
    heard = Interruptions()
    before = {}
    if threading.current_thread() is threading.main_thread():  # others hear no signals
        before = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    try:
        for number in before:
            signal.signal(number, heard)
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if heard.one_waits:
        raise KeyboardInterrupt


def silence(*streams: int) -> None:
    """Redirect streams, given by their numbers, to nowhere, because their reader is gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _hear_of_a_closed_terminal(number):
    if number == getattr(signal, "SIGHUP", None):
        silence(1, 2)
