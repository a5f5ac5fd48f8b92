"""Checks of single arguments: a bad one is refused by name, with what was given, what is allowed and what to do."""

import inspect
import numbers
import operator
from collections.abc import Callable, Iterable

import numpy as np
from sklearn.utils import check_random_state

from aevb.errors import did_you_mean, shown


def read_random_state(random_state) -> np.random.RandomState:
    """Return the generator that scikit-learn makes of a `random_state`."""
    try:
        return check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state={shown(random_state)} is not allowed. Give a whole number from 0 to {2**32 - 1}, a NumPy "
            "RandomState, or None."
        ) from None


def check_options(what: str, options: dict, function: Callable, first: int = 0) -> None:
    """Refuse options that a function does not have; its parameters before the number `first` are no options."""
    known = list(inspect.signature(function).parameters)[first:]
    for name in options:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ValueError(f"{what} has no option {name!r}.{hint} Its options are: {', '.join(known) or 'none'}.")


_KINDS = {int: (numbers.Integral, 2**31 - 1), float: (numbers.Real, float(np.finfo(np.float32).max))}


def check_parameter(
    name: str, value, *, choices: Iterable | None = None, kind=None, low=None, high=None, above=None, largest=None
) -> None:
    """Check one constructor argument.

    Args:
        name: Name of the argument.
        value: What was given.
        choices: Allowed values; with a `kind` they are allowed besides its numbers.
        kind: ``int`` or ``float``; None for one of the choices alone.
        low: Smallest allowed number.
        high: Largest allowed number.
        above: A number that is just too small.
        largest: Without `high`, a limit that is spoken of only where it is passed; None for the largest number that is
            computed with, in 32 bits.

    Raises:
        ValueError: Saying what was given and what is allowed.
    """
    choices = list(choices or ())
    if _is_one_of(value, choices):
        return
    if kind is None:
        names = [choice for choice in choices if isinstance(choice, str)]
        hint = did_you_mean(str(value).lower(), names)
        allowed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name}={shown(value)} is not known.{hint} Choose one of {allowed}.")
    number, of_its_kind = _KINDS[kind]
    largest = of_its_kind if largest is None else largest
    is_number = isinstance(value, number) and not isinstance(value, bool | np.bool_)
    if high is None and is_number and operator.gt(value, largest):
        high = largest
    rules = {"at least": (low, operator.ge), "at most": (high, operator.le), "more than": (above, operator.gt)}
    limits = [(words, limit, holds) for words, (limit, holds) in rules.items() if limit is not None]
    if not is_number or not all(holds(value, limit) for _, limit, holds in limits):
        wanted = "a whole number" if kind is int else "a number"
        allowed = " and ".join(f"{words} {limit}" for words, limit, _ in limits)
        others = "".join(f", or {choice!r}" for choice in choices)
        raise ValueError(f"{name}={shown(value)} is not allowed. Give {wanted} of {allowed}{others}.")


def _is_one_of(value, choices):
    """Whether a value is one of these words; what cannot be compared with them, such as an array, is not."""
    return isinstance(value, str | None) and value in choices
