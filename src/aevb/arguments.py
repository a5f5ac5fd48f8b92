"""Checks of single arguments: the error names the argument, what was given, what is allowed and what to do."""

import inspect
import numbers
import operator
from collections.abc import Callable, Iterable

import numpy as np
from sklearn.utils import check_random_state

from aevb.errors import did_you_mean, shown


def read_random_state(random_state) -> np.random.RandomState:
    """Return the generator that scikit-learn creates from a `random_state`."""
    try:
        return check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state={shown(random_state)} is not allowed. Give a whole number from 0 to {2**32 - 1}, a NumPy "
            "RandomState, or None."
        ) from None


def check_options(what: str, options: dict, function: Callable, first: int = 0) -> None:
    """Refuse options that a function does not have; its first `first` parameters are not options."""
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
        value: Its value.
        choices: Allowed values; with a `kind` they are allowed in addition to its numbers.
        kind: ``int`` or ``float``; None if only the choices are allowed.
        low: Smallest allowed number.
        high: Largest allowed number.
        above: Exclusive lower limit.
        largest: Without `high`, an upper limit that is only mentioned when it is exceeded; None for the largest 32-bit
            number of this kind.

    Raises:
        ValueError: The value is not allowed; the message says what is.
    """
    choices = list(choices or ())
    if _is_one_of(value, choices):
        return
    if kind is None:
        names = [choice for choice in choices if isinstance(choice, str)]
        hint = did_you_mean(str(value).lower(), names)
        allowed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name}={shown(value)} is not known.{hint} Choose one of {allowed}.")
    number, largest_of_kind = _KINDS[kind]
    largest = largest_of_kind if largest is None else largest
    is_number = isinstance(value, number) and not isinstance(value, bool | np.bool_)
    if high is None and is_number and operator.gt(value, largest):
        high = largest
    rules = {"at least": (low, operator.ge), "at most": (high, operator.le), "more than": (above, operator.gt)}
    limits = [(words, limit, holds) for words, (limit, holds) in rules.items() if limit is not None]
    if not is_number or not all(holds(value, limit) for _, limit, holds in limits):
        expected = "a whole number" if kind is int else "a number"
        allowed = " and ".join(f"{words} {limit}" for words, limit, _ in limits)
        others = "".join(f", or {choice!r}" for choice in choices)
        raise ValueError(f"{name}={shown(value)} is not allowed. Give {expected} of {allowed}{others}.")


def _is_one_of(value, choices):
    """Whether a value is one of the choices; an array, which cannot be compared with them, is not."""
    return isinstance(value, str | None) and value in choices
