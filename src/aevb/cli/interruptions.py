"""Signals that end a command: Ctrl-C, SIGTERM, a closed terminal. The model so far is saved."""

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


PATIENCE = 5.0  # seconds after which a second signal interrupts again: the first one may have been lost in a callback


class Interruptions:
    """Signal handler: the first signal interrupts, unless something is being saved; later ones are deferred."""

    def __init__(self):
        self._last, self._is_saving, self.is_pending = -math.inf, False, False

    def __call__(self, number, frame):
        """Handle a signal."""
        _silence_if_terminal_closed(number)
        if frame is not None and frame.f_code.co_name == "_xla_gc_callback":  # JAX's; Python ignores exceptions there
            threading.Timer(0.01, os.kill, (os.getpid(), number)).start()
            return
        if time.monotonic() - self._last > PATIENCE and not self._is_saving:
            self._last = time.monotonic()
            raise KeyboardInterrupt
        self.is_pending = True

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Defer all signals while something is being saved."""
        self._is_saving = True
        try:
            yield
        finally:
            self._is_saving = False


def end_as_by_ctrl_c() -> None:
    """Make SIGTERM and a closed terminal end a command like Ctrl-C."""
    for number in _SIGNALS:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, Interruptions())


@contextmanager
def one_interruption() -> Iterator[Interruptions]:
    """Let the first signal interrupt the block; those that follow soon after are deferred to its end.

    Impatient users press Ctrl-C twice, and a machine that shuts down sends several signals: the second one must not
    interrupt the save that the first one triggered.
    """
    interruptions = Interruptions()
    before = {}
    if threading.current_thread() is threading.main_thread():  # other threads receive no signals
        before = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    try:
        for number in before:
            signal.signal(number, interruptions)
        yield interruptions
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if interruptions.is_pending:
        raise KeyboardInterrupt


def silence(*streams: int) -> None:
    """Redirect streams, given by their numbers, to the null device, because their reader is gone."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(null, stream)
    os.close(null)


def _silence_if_terminal_closed(number):
    if number == getattr(signal, "SIGHUP", None):
        silence(1, 2)
