"""Numbers of a column and the numbers that a model learns from: the same, in a unit that suits float32."""

from dataclasses import replace

import numpy as np

from aevb.models.column import Column

REAL = ("gaussian", "student-t", "lognormal", "bounded")
COUNTS = ("poisson", "negative-binomial")
LABELS = ("bernoulli", "categorical", "ordinal", "free-ordinal")
MIN_ROWS_FOR_DECIMALS, MAX_DECIMALS = 20, 6
MIN_ROWS_PER_FREE_LEVEL = 100  # on average; with fewer, ordered levels are intervals of one variable
EXACT_BELOW = 2.0**40  # whole numbers up to this one survive division by any number in float64


def learn_number_column(name: str, family: str, values: np.ndarray, is_whole: bool = False) -> Column:
    """Return the column of a family for numbers.

    Args:
        name: Its name.
        family: A family of numbers.
        values: (n,), none missing.
        is_whole: Whether they are whole numbers, which must come back exactly.
    """
    low, high = ends_of(values) if family == "bounded" else (0.0, 1.0)
    column = Column.of(name, family, values, low, high)
    if is_whole and family in ("gaussian", "student-t") and np.abs(values).max() > EXACT_BELOW:
        # Both exact in subtraction and division.
        return replace(column, loc=float(np.rint(column.loc)), scale=2.0 ** float(np.rint(np.log2(column.scale))))
    return column


def numbers_of(column: Column, stored: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the numbers that stored ones stand for.

    Numbers of a "bounded" column and of one with cells are between `low` and `high`; those of a narrow cell are the
    frequent number around which it is.
    """
    values = column.in_units(stored)
    if column.family == "bounded":
        rounding = 1e-12 * (high - low)
        values = np.where(values < low + rounding, low, np.where(values > high - rounding, high, values))
    if column.kind.has_cells:
        values = np.clip(_at_frequent_values(values, column), low, high)
    return values


def _at_frequent_values(values, column):
    """Return numbers in narrow cells as the frequent values around which these are."""
    if not column.frequent:
        return values
    levels, found = np.array(column.single_values), np.searchsorted(column.edges, values, side="right")
    place = np.minimum(np.searchsorted(levels, found), len(levels) - 1)
    return np.where(levels[place] == found, np.array(column.frequent)[place], values)


def without_rounding_error(values: np.ndarray, width: float) -> np.ndarray:
    """Return numbers with 15 digits, so that 3.7 comes back as 3.7; unchanged if all are far from 0 for their width."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        unit = 10.0 ** (14 - np.floor(np.log10(np.abs(values))))
        rounded = np.rint(values * unit) / unit
        return np.where(np.abs(rounded - values) <= 1e-13 * width, rounded, values)


def decimals_of(values: np.ndarray) -> int | None:
    """Return how many decimals numbers have at most; None for more than 6, and if fewer than 20 numbers tell.

    Example:
        >>> decimals_of(np.arange(100) / 4), decimals_of(np.arange(100) / 3)
        (2, None)
    """
    if len(values) < MIN_ROWS_FOR_DECIMALS:
        return None
    return next(
        (digits for digits in range(MAX_DECIMALS + 1) if np.array_equal(np.round(values, digits), values)), None
    )


def natural_ends(values: np.ndarray) -> tuple[float, float]:
    """Return the ends of bounded numbers: 0 and 1, 0 and 100, or the smallest and the largest number."""
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 100:
        return 0.0, 1.0 if high <= 1 else 100.0
    return low, high


def ends_of(values: np.ndarray) -> tuple[float, float]:
    """Return the ends between which numbers lie, not at them.

    An end that occurs among the values is moved outwards by half the distance to the value next to it, so that its
    logit is finite and not far from the others'.

    Example:
        >>> ends_of(np.array([0.0, 0.5, 0.75]))
        (-0.25, 1.0)
    """
    low, high = natural_ends(values)
    inside = values[(values > low) & (values < high)]
    if not inside.size:
        inside = np.array([(low + high) / 2])
    smallest = 1e-9 * (high - low)
    below, above = max(inside.min() - low, smallest) / 2, max(high - inside.max(), smallest) / 2
    return low - float(below * np.any(values == low)), high + float(above * np.any(values == high))


def learn_label_column(name: str, kind: str, counts: np.ndarray) -> Column:
    """Return the column for labels that occur this often.

    Example:
        >>> learn_label_column("sex", "binary", np.array([50, 50])).start
        (0.0,)
    """
    codes = np.repeat(np.arange(len(counts)), counts).astype(np.float64)
    if kind == "binary":
        return Column.of(name, "bernoulli", codes, num_levels=2)
    is_free = kind == "ordinal" and counts.sum() >= MIN_ROWS_PER_FREE_LEVEL * len(counts)
    return Column.of(name, "free-ordinal" if is_free else kind, codes, num_levels=len(counts))
