"""What commands print: text on standard output, one JSON object, or only the last line."""

import json
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, TextIO

from cyclopts import Group, Parameter

from aevb.cli.interruptions import silence
from aevb.cli.wording import in_options

_GROUP = Group("Output", sort_key=2)
Quiet = Annotated[bool, Parameter(negative=(), group=_GROUP, help="Print only where the results are.")]
Json = Annotated[
    bool,
    Parameter(
        name="--json",
        negative=(),
        group=_GROUP,
        help='Print one JSON object instead of text; errors too, as {"error": ...}.',
    ),
]


def whole(_, tokens) -> int:
    """Return an integer; Cyclopts itself would round other numbers."""
    return int(tokens[0].value)


class InputError(ValueError):
    """Invalid input; the message is all that the user needs."""


def is_about_input(error: Exception) -> bool:
    """Whether the package itself refused its input; an error raised inside another package is a bug."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    name = traceback.tb_frame.f_globals.get("__name__", "") if traceback else ""
    return isinstance(error, OSError | ModuleNotFoundError) or name.startswith(("aevb.", "sklearn."))


@dataclass(frozen=True)
class Console:
    """What is printed, and where."""

    quiet: bool = False
    as_json: bool = False

    def say(self, text: str) -> None:
        """Print a line, unless quiet."""
        if not self.quiet and not self.as_json:
            print_line(text, sys.stdout)

    def end(self, last_line: str, result: dict) -> None:
        """Print the last line, or the result as JSON."""
        print_line(json.dumps(result, default=_plain) if self.as_json else last_line, sys.stdout)

    def warn(self, text: str) -> None:
        """Print a warning to standard error, also when quiet; JSON has it among the results."""
        if not self.as_json:
            print_line(f"Warning: {in_options(text)}", sys.stderr)

    def fail(self, message: str, prefix: str = "") -> None:
        """Print why a command failed: to standard error, and with --json as the one JSON object too."""
        message = in_options(message)
        print_line(prefix + message, sys.stderr)
        if self.as_json:
            print_line(json.dumps({"error": message}), sys.stdout)

    @property
    def shows_progress(self) -> bool:
        """Whether progress is shown; it goes to standard error."""
        return not self.quiet

    @contextmanager
    def notes(self) -> Iterator[None]:
        """Print warnings as notes, each once, after the block; those about a failing run also when quiet."""
        found = []
        try:
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always", UserWarning)
                warnings.simplefilter("always", RuntimeWarning)
                yield
        finally:
            said = (str(w.message) for w in found if not self.quiet or issubclass(w.category, RuntimeWarning))
            for message in dict.fromkeys(said):
                print_line(f"Note: {in_options(message)}", sys.stderr)


def print_line(text: str, stream: TextIO) -> None:
    """Print a line; if the reader is gone, as with `aevb fit ... | head`, continue without output."""
    try:
        print(text, file=stream, flush=True)
    except OSError:
        silence(stream.fileno())


def shell(*words) -> str:
    """Return a command that can be pasted into a shell, with paths quoted where they need it.

    Example:
        >>> shell("aevb", "report", "my runs/wine")
        "aevb report 'my runs/wine'"
    """
    return shlex.join(map(str, words))


def _plain(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
