"""Results in a JSON file, written one at a time, so that an interrupted experiment resumes where it was."""

import json
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, final

from aevb import runs
from aevb.experiments.figures import write_numbers
from aevb.experiments.threads import use_one_thread
from aevb.files import written_whole


@final
class ResultFile:
    """The results of an experiment by their keys, such as ("Adult", "10", "mean or mode").

    Args:
        path: The JSON file; what it contains is kept.
        about: What is written next to the results, such as a title and how they were measured.
    """

    def __init__(self, path: Path, about: dict[str, Any]):
        self.path, self._about = path, about
        self._commit = runs.commit()  # of the code that is loaded now; the files may change during a long run
        self.results: dict[str, Any] = stored_results(path)

    def get(self, *keys: str) -> Any:
        """Return the result of these keys, or None."""
        found = self.results
        for key in keys:
            found = found.get(key, {})
        return found or None

    def add(self, keys: tuple[str, ...], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the result of these keys; measure and write it, with CPU time and warnings, if it is not there."""
        return self.get(*keys) or self._keep(keys, _measured(measure))

    def add_all(
        self, measures: Mapping[tuple[str, ...], Callable[[], dict[str, Any]]], processes: int | None = None
    ) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
        """Yield keys and results, first those that are there; the others are measured several at a time.

        Args:
            measures: By keys, functions that can be pickled.
            processes: How many to measure at a time, each in a process of its own with one thread; None for one per
                core. A single one runs in this process.
        """
        yield from ((keys, found) for keys in measures if (found := self.get(*keys)))
        left = {keys: measure for keys, measure in measures.items() if not self.get(*keys)}
        number = min(processes or os.cpu_count() or 1, len(left))
        if number <= 1:
            yield from ((keys, self.add(keys, measure)) for keys, measure in left.items())
            return
        others = active_children()
        # New processes after some fits: compiled programs accumulate.
        pool = ProcessPoolExecutor(number, get_context("spawn"), initializer=_start_worker, max_tasks_per_child=20)
        try:
            for keys, result in zip(left, pool.map(_measured, left.values()), strict=True):
                yield keys, self._keep(keys, result)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(active_children()) - set(others):
                process.terminate()  # what it was measuring is measured again by the next call

    def _keep(self, keys, result):
        place = self.results
        for key in keys[:-1]:
            place = place.setdefault(key, {})
        place[keys[-1]] = result | {"commit": self._commit}
        self.write()
        return place[keys[-1]]

    def write(self) -> Path:
        """Write the file."""
        return write_numbers(self.path, {**self._about, "results": self.results})

    def write_summary(self, text: str) -> Path:
        """Write Markdown next to the file, under the same name."""
        path = self.path.with_suffix(".md")
        with written_whole(path) as scratch:
            scratch.write_text(text, encoding="utf-8")
        return path


def _measured(measure):
    """Return a result with its CPU time and warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        result = measure()
    seconds = round(time.process_time() - start, 2)
    return result | {"cpu_seconds": seconds, "warnings": sorted({str(warning.message) for warning in caught})}


def _start_worker():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the first process, which ends the others
    use_one_thread()


def completed(model: Any) -> Any:
    """Return a fitted model; if its fit was interrupted, end here: what it has learned so far is not a result."""
    if model.stopped_because_ == "interrupted":
        raise KeyboardInterrupt
    return model


def stored_results(path: Path) -> dict[str, Any]:
    """Return the results that a file contains, none if there is no file."""
    return json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else {}


def markdown_table(rows: list[list[Any]]) -> str:
    """Return rows of cells, the first one the header, as a Markdown table.

    Example:
        >>> print(markdown_table([["a", "b"], [1, 2]]), end="")
        | a | b |
        | --- | --- |
        | 1 | 2 |
    """
    lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
    lines.insert(1, "| " + " | ".join(["---"] * len(rows[0])) + " |")
    return "\n".join(lines) + "\n"
