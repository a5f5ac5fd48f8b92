"""Progress of curves: a bar with the remaining time on a terminal, one line per point elsewhere."""

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from aevb.experiments.cost import core_seconds, format_duration
from aevb.experiments.settings import Curve


class ProgressDisplay:
    """Context manager that shows the progress of the curves of a part.

    Args:
        enabled: Whether to show anything.
        core_seconds: Estimated cost of the part, in seconds on one core.
        title: Title of the part.
    """

    def __init__(self, enabled: bool, core_seconds: float, title: str):
        self._console = Console(stderr=True)
        is_terminal = self._console.is_terminal
        columns = BarColumn(bar_width=24), TextColumn("{task.percentage:>3.0f}%"), TextColumn("{task.fields[details]}")
        self._bar = Progress(TextColumn(title), *columns, console=self._console, disable=not (enabled and is_terminal))
        self._prints_lines = enabled and not is_terminal
        self._total, self._title = max(core_seconds, 1.0), title
        self._task = self._bar.add_task(title, total=self._total, details="starting")
        self._at_start: dict[str, float] = {}
        self._left: dict[str, float] = {}
        self._points: dict[str, int] = {}
        self._start = time.perf_counter()

    def __enter__(self) -> "ProgressDisplay":
        self._bar.start()
        return self

    def __exit__(self, *_) -> None:
        self._bar.stop()

    def __call__(self, curve: Curve, about: dict[str, Any]) -> None:
        """Update the display with the results of a curve so far."""
        left = core_seconds(curve, about["samples"])
        self._at_start.setdefault(curve.name, left)
        self._left[curve.name] = left
        done = sum(self._at_start.values()) - sum(self._left.values())
        details = _last_point(curve, about)
        self._bar.update(self._task, completed=min(done, self._total), details=f"{self._time_left(done)}  {details}")
        is_new = len(about["points"]) > self._points.get(curve.name, 0)
        self._points[curve.name] = len(about["points"])
        if self._prints_lines and is_new:
            print(f"{self._title}: {details}", file=self._console.file, flush=True)

    def note(self, text: str) -> None:
        """Show what is being measured when it is not a curve."""
        self._bar.update(self._task, details=text)
        if self._prints_lines:
            print(f"{self._title}: {text}", file=self._console.file, flush=True)

    def _time_left(self, done):
        if done <= 0:
            return ""
        rate = done / (time.perf_counter() - self._start)
        return f"about {format_duration(max(self._total - done, 0) / rate)} left"


def _last_point(curve, about):
    details = f"{curve.title}: {about['samples']:,} samples"
    if about["points"]:
        last = about["points"][-1]["test"]
        details += f", {curve.metric.replace('-', ' ')} of test data {last['mean']:.1f} ± {last['std_error']:.1f}"
    return details
