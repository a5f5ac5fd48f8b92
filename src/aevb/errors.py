"""Exceptions for invalid arguments and data files, and helpers for their messages."""

import difflib
from collections.abc import Iterable, Sequence


class WrongTypeError(TypeError, ValueError):
    """An argument of the wrong type. It is also a ValueError, like the errors for all other invalid arguments."""


class DataFileError(ValueError):
    """A data file cannot be used; the message says what is wrong and what to do."""


def shown(value, most: int = 80) -> str:
    """Return a value as messages show it: on one line, and truncated if it is long.

    Example:
        >>> shown("a" * 100, most=10)
        "'aaaaaa..."
    """
    text = " ".join(repr(value.item() if hasattr(value, "item") and not getattr(value, "shape", 1) else value).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return a question that suggests the closest known name, to append to a sentence; empty if none is close.

    Example:
        >>> did_you_mean("digts", ["digits", "mnist"])
        " Did you mean 'digits'?"
    """
    close = difflib.get_close_matches(given, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def no_column(given: str, known: Sequence[str]) -> str:
    """Return the message that a table has no column of this name, with the columns that it has."""
    names = ", ".join(known[:30]) + ", ..." * (len(known) > 30)
    return f"there is no column {given!r}; its columns are {names or 'none'}.{did_you_mean(given, known)}"
