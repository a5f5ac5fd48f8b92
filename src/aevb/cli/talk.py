"""How commands speak: words on standard output, or one JSON object, or little at all."""

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, TextIO

from cyclopts import Group, Parameter

from aevb.cli.interruptions import fall_silent

_GROUP = Group("Output", sort_key=2)
Quiet = Annotated[bool, Parameter(negative=(), group=_GROUP, help="Say only where the results are.")]
Json = Annotated[bool, Parameter(name="--json", negative=(), group=_GROUP, help="Print one JSON object, for machines.")]


def whole(_, tokens) -> int:
    """Return the whole number that was given; Cyclopts itself would round others."""
    return int(tokens[0].value)


class InputError(ValueError):
    """Something that the user gave cannot be used; the message is all they need."""


def is_about_input(error: Exception) -> bool:
    """Whether the package itself refused something; an error from inside of other packages is a defect of ours."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    name = traceback.tb_frame.f_globals.get("__name__", "") if traceback else ""
    return isinstance(error, OSError | ModuleNotFoundError) or name.startswith(("aevb.", "sklearn."))


@dataclass(frozen=True)
class Talk:
    """What is said, and where."""

    quiet: bool = False
    as_json: bool = False

    def say(self, text: str) -> None:
        """Say something on the way."""
        if not self.quiet and not self.as_json:
            print_line(text, sys.stdout)

    def end(self, last_line: str, result: dict) -> None:
        """Say the last line, or give the result as JSON."""
        print_line(json.dumps(result, default=_plain) if self.as_json else last_line, sys.stdout)

    @property
    def shows_progress(self) -> bool:
        """Whether progress is shown; it goes to standard error."""
        return not self.quiet

    @contextmanager
    def notes(self) -> Iterator[None]:
        """Say warnings as notes, each once, after the block; what went wrong in a run is said even when quiet."""
        found = []
        try:
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always", UserWarning)
                warnings.simplefilter("always", RuntimeWarning)
                yield
        finally:
            said = (str(w.message) for w in found if not self.quiet or issubclass(w.category, RuntimeWarning))
            for message in dict.fromkeys(said):
                print_line(f"Note: {message}", sys.stderr)


def print_line(text: str, stream: TextIO) -> None:
    """Print a line; if nobody reads any more, as of `aevb fit ... | head`, the work goes on in silence."""
    try:
        print(text, file=stream, flush=True)
    except OSError:
        fall_silent(stream.fileno())


def _plain(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
