"""The arguments that an estimator was given, as a value that cannot be changed."""

from collections.abc import Mapping
from typing import Any

from aevb.settings.setting import Setting
from aevb.settings.table import OWN_PARTS, SETTINGS

HIDDEN, TABLE_HIDDEN = (500,), (200, 200)  # widths by default, of matrices and of tables
LATENT_DIM, TABLE_LATENT_DIM = 2, 10
ROWS_PER_VARIABLE = 10  # at least
NUM_WEIGHTED = 5  # draws of z per row


class Arguments:
    """The arguments of an estimator as they were given, with defaults for the others; they cannot be changed.

    Example:
        >>> Arguments(latent_dim=5).latent_dim, Arguments().hidden
        (5, None)
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

    def options(self, settings: Mapping[str, Setting]) -> dict[str, Any]:
        """Return the arguments with these names; those that a model file of an earlier version lacks, by default."""
        return {name: self.option(name, setting.default) for name, setting in settings.items()}

    def hidden_for(self, *, is_table: bool) -> tuple[int, ...]:
        """Return the widths of the hidden layers, also if one number was given; by default, those for such data.

        Of a hierarchy they are those between the data and the level next to them.

        Example:
            >>> Arguments().hidden_for(is_table=False), Arguments(hidden=50).hidden_for(is_table=True)
            ((500,), (50,))
        """
        if self.hidden is None:
            return TABLE_HIDDEN if is_table and self.option("label_prior", None) is None else HIDDEN
        return widths_of(self.hidden[0] if are_nested(self.hidden) else self.hidden)

    def hidden_between(self, *, is_table: bool) -> tuple[tuple[int, ...], ...]:
        """Return the widths of the hidden layers between the levels of a hierarchy, from the data up.

        By default, each is half as wide as the one below it.

        Example:
            >>> Arguments(latent_dim=(100, 50, 20), hidden=(200, 200)).hidden_between(is_table=False)
            ((100, 100), (50, 50))
        """
        if self.hidden is not None and are_nested(self.hidden):
            return tuple(widths_of(widths) for widths in self.hidden[1:])
        widths, between = self.hidden_for(is_table=is_table), []
        for _ in self.levels[1:]:
            widths = tuple(max(width // 2, 1) for width in widths)
            between.append(widths)
        return tuple(between)

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of latent variables of each level of a hierarchy, the one next to the data first; else empty.

        Example:
            >>> Arguments(latent_dim=(100, 50)).levels, Arguments(latent_dim=10).levels
            ((100, 50), ())
        """
        if isinstance(self.latent_dim, str) or not hasattr(self.latent_dim, "__len__"):
            return ()
        return tuple(int(size) for size in self.latent_dim)

    def latent_dim_for(self, likelihood: str, num_columns: int, num_rows: int | None = None) -> Any:
        """Return J as given, "auto" too; by default, one per column up to ten for tables and real numbers, else 2.

        Of a hierarchy it is the number of latent variables of all levels.
        Of few training rows there are at least ten per latent variable.

        Example:
            >>> [Arguments().latent_dim_for(*of) for of in (("bernoulli", 784), ("gaussian", 5), ("table", 50, 60))]
            [2, 5, 6]
        """
        if hasattr(self.latent_dim, "__len__") and not isinstance(self.latent_dim, str):
            return sum(int(size) for size in self.latent_dim)
        if self.latent_dim is not None:
            return self.latent_dim
        has_columns = likelihood in ("gaussian", "table") and not self.own_parts
        most = TABLE_LATENT_DIM if num_rows is None else min(TABLE_LATENT_DIM, num_rows // ROWS_PER_VARIABLE)
        return max(min(num_columns, most), LATENT_DIM) if has_columns else LATENT_DIM

    def num_samples_for(self, estimator: str) -> int:
        """Return L as given, or at least 5 if the importance-weighted bound was chosen automatically.

        Example:
            >>> [Arguments().num_samples_for(name) for name in ("sgvb-b", "importance")]
            [1, 5]
        """
        is_chosen = self.estimator == "auto" and estimator == "importance"
        return max(self.num_samples, NUM_WEIGHTED) if is_chosen else self.num_samples

    @property
    def own_prior(self) -> Any:
        """The prior that the user defined; None if it is one by name, or chosen automatically."""
        return None if isinstance(self.prior, str) else self.prior

    @property
    def own_parts(self) -> list[str]:
        """The names of the parts of the model that the user defined."""
        return [name for name in OWN_PARTS if not isinstance(vars(self).get(name), str | None)]


def are_nested(hidden: Any) -> bool:
    """Whether the widths of hidden layers are given level by level."""
    return hasattr(hidden, "__len__") and any(hasattr(item, "__len__") for item in hidden)


def widths_of(hidden: Any) -> tuple[int, ...]:
    """Return the widths of hidden layers, also if one number was given."""
    return tuple(int(width) for width in (hidden if hasattr(hidden, "__len__") else (hidden,)))
