"""Results in a JSON file, written one at a time, so that an interrupted experiment resumes where it was."""

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

from aevb import runs
from aevb.experiments.figures import write_numbers
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
        if found := self.get(*keys):
            return found
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start = time.process_time()
            result = measure()
        result |= {"cpu_seconds": round(time.process_time() - start, 2), "commit": self._commit}
        result |= {"warnings": sorted({str(warning.message) for warning in caught})}
        place = self.results
        for key in keys[:-1]:
            place = place.setdefault(key, {})
        place[keys[-1]] = result
        self.write()
        return result

    def write(self) -> Path:
        """Write the file."""
        return write_numbers(self.path, {**self._about, "results": self.results})

    def write_summary(self, text: str) -> Path:
        """Write Markdown next to the file, under the same name."""
        path = self.path.with_suffix(".md")
        with written_whole(path) as scratch:
            scratch.write_text(text, encoding="utf-8")
        return path


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
