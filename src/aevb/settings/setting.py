"""One argument of an estimator: its default, its allowed values, and its meaning."""

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

_PLACE = "Args: described in :mod:`aevb.settings`."


@dataclass(frozen=True)
class Setting:
    """One argument.

    Args:
        default: Its default.
        help: Its meaning, as in the docstring.
        kind: ``int``, ``float``, ``bool`` or ``str``: the type of a value that can be written in a file; None for
            Python objects.
        choices: Values that are allowed in addition to, or instead of, those of the kind.
        registry: ``"module:collection"`` of allowed names.
        low: Smallest allowed number.
        high: Largest allowed number.
        above: Exclusive lower limit.
        largest: An upper limit that is only mentioned when it is exceeded.
        several: Whether a sequence of values is allowed.
        is_structural: Whether it says what the model consists of, which training that goes on cannot change.
    """

    default: Any
    help: str
    kind: type | None = str
    choices: tuple = ()
    registry: str | None = None
    low: float | None = None
    high: float | None = None
    above: float | None = None
    largest: float | None = None
    several: bool = False
    is_structural: bool = False

    def __post_init__(self):
        object.__setattr__(self, "help", " ".join(self.help.split()))

    @property
    def plain_help(self) -> str:
        """Its meaning, without code markup."""
        return self.help.replace("`", "").replace('"', "")


Estimator = TypeVar("Estimator", bound=type)


def with_arguments(settings: Mapping[str, Setting]) -> Callable[[Estimator], Estimator]:
    """Insert the arguments into the docstring of a class, where it refers to this module."""
    lines = [
        textwrap.fill(
            f"{name}: {setting.help}", 112, initial_indent=" " * 4, subsequent_indent=" " * 8, break_on_hyphens=False
        )
        for name, setting in settings.items()
    ]

    def decorate(estimator):
        document = inspect.cleandoc(estimator.__doc__ or "")
        assert _PLACE in document
        estimator.__doc__ = document.replace(_PLACE, "\n".join(["Args:", *lines]))
        return estimator

    return decorate
