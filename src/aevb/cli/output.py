"""Checks that a command can write its output, before any work is done."""

from pathlib import Path

from aevb.cli.console import InputError
from aevb.files import why_not_writable


def check_output(path: Path, *endings: str, option: str = "--output") -> None:
    """Refuse a file that cannot be written, or whose name has a different ending; nothing is created.

    Raises:
        InputError: It cannot be written; the message says why.
    """
    if path.suffix not in endings:
        raise InputError(f"{option} {path}: its name must end in {', '.join(endings)}.")
    if reason := "it is a folder" if path.is_dir() else why_not_writable(path.parent):
        raise InputError(f"{option} {path}: cannot write there ({reason}). Choose a file in a folder you can write to.")


def check_folder(path: Path, option: str = "--output") -> None:
    """Refuse a folder that cannot be created or written to; nothing is created.

    Raises:
        InputError: It cannot be written; the message says why.
    """
    if reason := why_not_writable(path):
        raise InputError(f"{option} {path}: cannot write there ({reason}). Choose a folder you can write to.")
