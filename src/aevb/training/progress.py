"""The progress bar with speed, bound and remaining time; in notebooks as HTML; elsewhere, plain lines."""

import time
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from aevb.parallel import group
from aevb.training.notebook import NotebookBar, in_notebook


def tell(enabled: bool, message: str) -> None:
    """Print a message to the standard error, if anything is to be shown and it is open."""
    if enabled and group().is_first:
        with suppress(OSError):
            Console(stderr=True).print(message, highlight=False, soft_wrap=True)


class ShareDone:
    """Context manager with a progress bar for the fraction of work done; shown in terminals and notebooks.

    Args:
        enabled: Whether to show anything.
        what: One word for the work.
    """

    def __init__(self, enabled: bool, what: str):
        columns = BarColumn(bar_width=24), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn()
        console = Console(stderr=True)
        self._what, self._page = what, NotebookBar() if enabled and in_notebook() else None
        disable = not (enabled and console.is_terminal) or self._page is not None
        self._bar = RichProgress(TextColumn(what), *columns, console=console, disable=disable)
        self._task = self._bar.add_task(what, total=1.0)

    def __enter__(self) -> "ShareDone":
        self._bar.start()
        return self

    def __exit__(self, *_) -> None:
        self._bar.stop()

    def update(self, share: float) -> None:
        """Show the fraction done, from 0 to 1; it never decreases."""
        share = max(share, self._bar.tasks[self._task].completed)
        self._bar.update(self._task, completed=share)
        if self._page is not None:
            self._page.show(share, f"{self._what} {share:.0%}", is_last=share == 1.0)


LINE_SECONDS = 5.0  # between two lines outside a terminal


class Progress:
    """Context manager with a progress bar on a terminal or in a notebook, plain lines elsewhere; silent if disabled.

    Args:
        enabled: Whether to show progress; None to print no notes either.
        total: Maximum number of training samples; None if unknown.
        done: Number of samples already seen in an earlier part of the run.
        what: What the run does, in a word or two.

    If the output is closed, such as a closed terminal, it becomes silent and training continues.
    """

    def __init__(self, enabled: bool | None, total: int | None, done: int = 0, what: str = "learning"):
        enabled, self._what = enabled if group().is_first else None, what
        self._prints_notes = enabled is not None
        self._console = Console(stderr=True)
        self._page = NotebookBar() if enabled and in_notebook() else None
        is_terminal = self._console.is_terminal and self._page is None
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%" if total else "{task.completed:,} samples"),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[objective]}"),
            *([TimeRemainingColumn()] if total else []),
            console=self._console,
            disable=not (enabled and is_terminal),
            transient=False,
        )
        self._prints_lines = bool(enabled) and not is_terminal and self._page is None
        self._total, self._done, self._first = total, done, None  # end of the first chunk, which includes compilation
        self._last_line, self._has_printed = time.perf_counter(), False
        self._task = self._bar.add_task(what, total=total, completed=done, rate="", objective="")

    def __enter__(self) -> "Progress":
        with self._ignore_closed_output():
            self._bar.start()
        return self

    def __exit__(self, *_) -> None:
        with self._ignore_closed_output():
            self._bar.stop()

    def advance(self, samples: int, name: str, value: float) -> None:
        """Advance by one chunk, and show the maximized value."""
        objective = f"training {name.replace('_', ' ')} {value:.2f} nats"
        self._done += samples
        self._first = self._first or (time.perf_counter(), self._done)
        with self._ignore_closed_output():
            if self._prints_lines and time.perf_counter() - self._last_line > LINE_SECONDS:
                self._say_line(objective)
            self._bar.update(self._task, advance=samples, objective=objective, rate=self._rate())
            if self._page is not None:
                self._page.show(self._share(), self._line(objective))

    def end(self) -> None:
        """Show the work as complete."""
        with self._ignore_closed_output():
            if self._prints_lines and self._has_printed:
                print(f"{self._what}: done after {self._done:,} samples", file=self._console.file, flush=True)
            self._bar.update(self._task, total=self._bar.tasks[self._task].completed)
            if self._page is not None:
                self._page.show(1.0, f"{self._what}: done after {self._done:,} samples", is_last=True)

    def note(self, message: str) -> None:
        """Print a message below the bar."""
        with self._ignore_closed_output():
            if self._prints_notes:
                self._console.print(message)

    @contextmanager
    def _ignore_closed_output(self):
        try:
            yield
        except OSError:
            self._prints_lines, self._bar.disable = False, True

    def _say_line(self, objective):
        self._last_line, self._has_printed = time.perf_counter(), True
        print(self._line(objective), file=self._console.file, flush=True)

    def _share(self) -> float | None:
        return self._done / self._total if self._total else None

    def _line(self, objective) -> str:
        now = time.perf_counter()
        start, done_then = self._first or (now, self._done)
        rate = (self._done - done_then) / (now - start) if self._done > done_then else None
        share = f" ({self._done / self._total:.0%})" if self._total else ""
        speed = f", {rate:,.0f} samples/s" if rate else ""
        left = f", at most {(self._total - self._done) / rate:.0f} s left" if self._total and rate else ""
        return f"{self._what}: {self._done:,} samples{share}{speed}, {objective}{left}"

    def _rate(self) -> str:
        speed = self._bar.tasks[self._task].speed
        return f"{speed:,.0f} samples/s" if speed else ""
