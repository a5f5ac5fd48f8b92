"""One argument of an estimator: its default, its allowed values, and its meaning."""

from dataclasses import dataclass
from typing import Any


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

    def __post_init__(self):
        object.__setattr__(self, "help", " ".join(self.help.split()))

    @property
    def plain_help(self) -> str:
        """Its meaning, without code markup."""
        return self.help.replace("`", "").replace('"', "")
