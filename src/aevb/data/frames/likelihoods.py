"""Which kinds of columns a user can ask for: `likelihood={"age": "gaussian", "sex": "categorical"}`."""

from collections.abc import Mapping, Sequence
from typing import Any

from aevb.errors import did_you_mean, no_column, shown

DROP = "drop"
AUTO = "auto"
AS_ASKED = "left out, as asked for"
# What users can write, and what it means.
KINDS = {
    "gaussian": "real numbers",
    "student-t": "real numbers with heavy tails",
    "lognormal": "positive numbers, skewed to the right",
    "bounded": "numbers between two ends, such as shares",
    "count": "counts, Poisson or negative binomial",
    "poisson": "counts whose variance is about their mean",
    "negative-binomial": "counts whose variance exceeds their mean",
    "quantile-gaussian": "numbers of any shape, by their quantiles; for tables with many rows",
    "histogram": "numbers of which a few values are frequent, or with several modes; for tables with many rows",
    "binary": "two values",
    "categorical": "labels",
    "ordinal": "labels with an order",
    "date": "dates",
    DROP: "leave the column out",
}
ALIASES = {"bernoulli": "binary"}
MEANT = {  # by other words that users may write
    **dict.fromkeys(("normal", "real", "numeric", "number", "float"), "gaussian"),
    **dict.fromkeys(("int", "integer", "whole"), "count"),
    **dict.fromkeys(("category", "label", "text", "string"), "categorical"),
    **dict.fromkeys(("bool", "boolean"), "binary"),
    **dict.fromkeys(("datetime", "time"), "date"),
}


def requested_kinds(likelihood: Any, columns: Sequence[str]) -> dict[str, str]:
    """Return the kind that a user asks for, by column; "auto" for columns whose kind is to be found.

    Args:
        likelihood: "auto", a kind for all columns, or a mapping from names of columns to kinds.
        columns: All columns.

    Raises:
        ValueError: A column or a kind is not known; the message lists those that are.

    Example:
        >>> requested_kinds({"sex": "bernoulli"}, ["age", "sex"])
        {'age': 'auto', 'sex': 'binary'}
    """
    if likelihood is None:
        likelihood = AUTO
    if not isinstance(likelihood, Mapping):
        return dict.fromkeys(columns, read_kind(likelihood, "likelihood"))
    for name in likelihood:
        if str(name) not in columns:
            raise ValueError(f"likelihood={shown(dict(likelihood))}: {no_column(str(name), list(columns))}")
    requested = {str(name): read_kind(kind, f"likelihood[{name!r}]") for name, kind in likelihood.items()}
    return {name: requested.get(name, AUTO) for name in columns}


def read_kind(given: Any, argument: str) -> str:
    """Return the kind that a user means; refuse one that is not known, in a message about this argument."""
    known = [AUTO, *KINDS, *ALIASES]
    if not isinstance(given, str) or given not in known:
        word = str(given).lower()
        hint = f" Did you mean {MEANT[word]!r}?" if word in MEANT else did_you_mean(word, known)
        raise ValueError(
            f"{argument}={shown(given)} is not a kind of column.{hint} Choose one of {', '.join(map(repr, known))}."
        )
    return ALIASES.get(given, given)
