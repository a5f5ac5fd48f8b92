"""What is raised at an argument of the wrong kind, and how messages show what was given."""

import difflib
from collections.abc import Iterable, Sequence


class WrongTypeError(TypeError, ValueError):
    """An argument that is no value of the kind asked for: a TypeError, and a ValueError like all that is refused."""


class DataFileError(ValueError):
    """A data file that cannot be used, with what is wrong and what to do."""


def shown(value, most: int = 80) -> str:
    """Return a value as a message shows it: in one line, cut where it gets long.

    Example:
        >>> shown("a" * 100, most=10)
        "'aaaaaa..."
    """
    text = " ".join(repr(value.item() if hasattr(value, "item") and not getattr(value, "shape", 1) else value).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return a question after the name that may have been meant, to be put after a sentence; nothing if none is near.

    Example:
        >>> did_you_mean("digts", ["digits", "mnist"])
        " Did you mean 'digits'?"
    """
    close = difflib.get_close_matches(given, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def no_column(given: str, known: Sequence[str]) -> str:
    """Say that a table has no column of a name, and which it has."""
    names = ", ".join(known[:30]) + ", ..." * (len(known) > 30)
    return f"there is no column {given!r}; its columns are {names or 'none'}.{did_you_mean(given, known)}"
