"""The progress bar: rate, bound and time left; outside of a terminal a plain line now and then."""

import time
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


class ShareDone:
    """Context manager around a bar for work of which only the share done is known; there is none outside a terminal.

    Args:
        enabled: Whether to show anything.
        what: What is being done, a word.
    """

    def __init__(self, enabled: bool, what: str):
        columns = BarColumn(bar_width=24), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn()
        console = Console(stderr=True)
        disable = not (enabled and console.is_terminal)
        self._bar = RichProgress(TextColumn(what), *columns, console=console, disable=disable)
        self._task = self._bar.add_task(what, total=1.0)

    def __enter__(self) -> "ShareDone":
        self._bar.start()
        return self

    def __exit__(self, *_) -> None:
        self._bar.stop()

    def update(self, share: float) -> None:
        """Show the share done, from 0 to 1; it never goes back."""
        self._bar.update(self._task, completed=max(share, self._bar.tasks[self._task].completed))


LINE_SECONDS = 10.0  # between two lines outside of a terminal


class Progress:
    """Context manager around a terminal progress bar, or plain lines elsewhere; silent when not wanted.

    Args:
        enabled: Whether to show anything.
        total: Number of training samples to be seen at the most; None if nobody knows.
        done: Number of those that an earlier part of the run has seen.

    If nobody can hear it, as of a terminal that was closed, it falls silent; learning goes on.
    """

    def __init__(self, enabled: bool, total: int | None, done: int = 0):
        self._console = Console(stderr=True)
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%" if total else "{task.completed:,} samples"),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[objective]}"),
            *([TimeRemainingColumn()] if total else []),
            console=self._console,
            disable=not (enabled and self._console.is_terminal),
            transient=False,
        )
        self._says_lines = enabled and not self._console.is_terminal
        self._total, self._done, self._first = total, done, None  # when the first chunk was done, which is compiled
        self._last_line = time.perf_counter()
        self._task = self._bar.add_task("learning", total=total, completed=done, rate="", objective="")

    def __enter__(self) -> "Progress":
        with self._heard_or_not():
            self._bar.start()
        return self

    def __exit__(self, *_) -> None:
        with self._heard_or_not():
            self._bar.stop()

    def advance(self, samples: int, name: str, value: float) -> None:
        """Move on by one chunk, and show what is maximized."""
        objective = f"training {name.replace('_', ' ')} {value:.2f} nats"
        self._done += samples
        self._first = self._first or (time.perf_counter(), self._done)
        with self._heard_or_not():
            if self._says_lines and time.perf_counter() - self._last_line > LINE_SECONDS:
                self._say_line(objective)
            self._bar.update(self._task, advance=samples, objective=objective, rate=self._rate())

    def end(self) -> None:
        """Take what was done for all there was to do."""
        with self._heard_or_not():
            self._bar.update(self._task, total=self._bar.tasks[self._task].completed)

    def note(self, message: str) -> None:
        """Say something below the bar."""
        with self._heard_or_not():
            self._console.print(message)

    @contextmanager
    def _heard_or_not(self):
        try:
            yield
        except OSError:
            self._says_lines, self._bar.disable = False, True

    def _say_line(self, objective):
        self._last_line = now = time.perf_counter()
        start, done_then = self._first or (now, self._done)
        rate = (self._done - done_then) / (now - start) if self._done > done_then else None
        share = f" ({self._done / self._total:.0%})" if self._total else ""
        speed = f", {rate:,.0f} samples/s" if rate else ""
        left = f", at most {(self._total - self._done) / rate:.0f} s left" if self._total and rate else ""
        said = f"learning: {self._done:,} samples{share}{speed}, {objective}{left}"
        print(said, file=self._console.file, flush=True)

    def _rate(self) -> str:
        speed = self._bar.tasks[self._task].speed
        return f"{speed:,.0f} samples/s" if speed else ""
