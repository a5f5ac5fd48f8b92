"""The option --column of `aevb fit`: the kinds of single columns."""

from collections.abc import Mapping, Sequence
from typing import Any

from aevb.cli.console import InputError


def with_kinds(likelihood: Any, options: Sequence[str]) -> dict[str, str]:
    """Return the likelihood as kinds by column, with those that options such as age=gaussian name.

    Args:
        likelihood: A name for all columns, or kinds by column.
        options: The options, each NAME=KIND.

    Raises:
        InputError: An option is not of this form, names an unknown kind, or contradicts another.

    Example:
        >>> with_kinds("auto", ["age=gaussian", "id=drop"])
        {'age': 'gaussian', 'id': 'drop'}
    """
    from aevb.data.frames.likelihoods import AUTO, read_kind

    if not isinstance(likelihood, Mapping) and likelihood != AUTO:
        raise InputError(
            f"--likelihood {likelihood} is for all columns, and --column for single ones: give only one of them."
        )
    kinds = dict(likelihood) if isinstance(likelihood, Mapping) else {}
    for name, kind in pairs(options, "--column", "NAME=KIND, for example age=gaussian").items():
        try:
            kinds[name] = read_kind(kind, f"--column {name}")
        except ValueError as error:
            raise InputError(str(error)) from None
    return kinds


def pairs(options: Sequence[str], option: str, form: str) -> dict[str, str]:
    """Return repeated options of the form NAME=VALUE as a mapping.

    Raises:
        InputError: An option has another form, or a name occurs twice.
    """
    found: dict[str, str] = {}
    for given in options:
        name, is_pair, value = (text.strip() for text in given.partition("="))
        if not (is_pair and name and value):
            raise InputError(f"{option} {given}: expected {form}.")
        if name in found:
            raise InputError(f"{option} {given}: {name!r} was given twice.")
        found[name] = value
    return found
