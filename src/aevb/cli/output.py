"""Where a command writes to: refused before any work if that cannot be."""

from pathlib import Path

from aevb.cli.console import InputError
from aevb.files import why_not_writable


def check_output(path: Path, *endings: str, option: str = "--output") -> None:
    """Refuse a file that could not be written, or has another ending; nothing is made.

    Raises:
        InputError: With the reason.
    """
    if path.suffix not in endings:
        raise InputError(f"{option} {path}: its name must end in {', '.join(endings)}.")
    if reason := "it is a folder" if path.is_dir() else why_not_writable(path.parent):
        raise InputError(f"{option} {path}: cannot write there ({reason}). Choose a file in a folder you can write to.")


def check_folder(path: Path, option: str = "--output") -> None:
    """Refuse a folder that could not be made or written to; nothing is made.

    Raises:
        InputError: With the reason.
    """
    if reason := why_not_writable(path):
        raise InputError(f"{option} {path}: cannot write there ({reason}). Choose a folder you can write to.")
