"""Which arguments a fitted model keeps: those that say what it consists of."""

from typing import Any

from aevb.errors import shown
from aevb.files import plain
from aevb.settings import STRUCTURE, Arguments


def check_structure(given: Arguments, fitted: Arguments) -> None:
    """Refuse arguments that describe another model than the one that was fitted.

    Args:
        given: The present arguments of an estimator.
        fitted: Those that its model was fitted with.

    Raises:
        ValueError: Training cannot go on with one of them; the message names it.
    """
    for name, setting in STRUCTURE.items():
        now, before = (arguments.option(name, setting.default) for arguments in (given, fitted))
        if not _are_equal(now, before):
            raise ValueError(
                f"partial_fit: {name}={shown(now)}, but the model was fitted with {name}={shown(before)}, and training "
                f"that goes on cannot change what it consists of. Set it back, set_params({name}={shown(before)}), or "
                "call fit."
            )


def saved_arguments(given: Arguments, fitted: Arguments) -> Arguments:
    """Return the present arguments, except for those that what is saved was learned with: the model is rebuilt by them.

    Args:
        given: The present arguments of an estimator.
        fitted: Those that its model was fitted with.
    """
    kept = {name: getattr(fitted, name) for name in (*STRUCTURE, "optimizer") if name in vars(fitted)}
    return given.replaced(**kept)


def _are_equal(one: Any, other: Any) -> bool:
    """Whether two values mean the same, as 50 and (50,) do for widths; networks have to be the same object."""
    try:
        one, other = (value if isinstance(value, list) else [value] for value in (plain(one), plain(other)))
    except TypeError:
        return one is other
    return one == other
