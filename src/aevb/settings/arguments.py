"""The arguments that an estimator was given, as a value that cannot be changed."""

from typing import Any

from aevb.settings.table import OWN_PARTS, SETTINGS


class Arguments:
    """The arguments of an estimator as they were given, with defaults for the others; they cannot be changed.

    Example:
        >>> Arguments(latent_dim=5).latent_dim, Arguments().hidden
        (5, (500,))
    """

    def __init__(self, **given: Any):
        vars(self).update({name: setting.default for name, setting in SETTINGS.items()} | given)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no argument {name!r}")

    def __setattr__(self, name: str, value: Any):
        raise AttributeError(f"{name}: the arguments of a fitted model cannot be changed")

    def replaced(self, **changes: Any) -> "Arguments":
        """Return the arguments with some others."""
        return Arguments(**(vars(self) | changes))

    def option(self, name: str, default: Any) -> Any:
        """Return an argument that only some estimators have."""
        return vars(self).get(name, default)

    @property
    def hidden_widths(self) -> tuple[int, ...]:
        """The widths of the hidden layers, also if one number was given."""
        try:
            return tuple(int(width) for width in self.hidden)
        except TypeError:
            return (int(self.hidden),)

    @property
    def own_prior(self) -> Any:
        """The prior that the user defined; None if it is one by name, or chosen automatically."""
        return None if isinstance(self.prior, str) else self.prior

    @property
    def own_parts(self) -> list[str]:
        """The names of the parts of the model that the user defined."""
        return [name for name in OWN_PARTS if not isinstance(vars(self)[name], str | None)]
