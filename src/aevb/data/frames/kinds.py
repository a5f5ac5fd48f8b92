"""Decide what kind of variable each column is, with the reason in a plain sentence.

The rules look at the data type first, then at the values, and are cheap: at most 10,000 numbers are looked at closely.
"""

import re
from typing import Any, NamedTuple

import numpy as np

from aevb.data.checks import are_constant
from aevb.data.frames import evidence
from aevb.data.frames.cells import BOOLEAN, DATE, DURATION, EMPTY, NUMBER, OTHER, TEXT, WORDS, Cells
from aevb.data.frames.likelihoods import AUTO, DROP
from aevb.errors import shown

IDENTIFIER = "an identifier"  # how the reason begins
MAX_LEVELS = 1000  # of a categorical column; with more it is free text
MAX_CODES = 20  # different whole numbers that can be codes
MIN_GRADES = 5  # whole numbers with one peak, to be taken for a scale
MAX_STEPS = 10  # different numbers with decimals that can be an ordered scale
MIN_ROWS_PER_LEVEL = 20
MIN_ROWS_TO_JUDGE = 20  # fewer entries may all differ by chance
MIN_GAIN = 0.1  # nats per entry that a density must win over the normal one
MIN_GAIN_IN_ALL = 5.0  # and nats for all entries, so that a few rows do not decide
MIN_SKEWNESS = 1.0
MIN_ROWS_FOR_CELLS = 1000
MIN_SPIKES = 0.4  # share of rows at values that stand out from their neighbours, for which order means little
MAX_DISTANCE = 0.2  # in total variation, from a Poisson or negative binomial variable
MAX_LAST_SHARE = 0.1  # of the largest count: codes may all be frequent
MIN_ZEROS = 0.05  # share of zeros in counts that take many values
MAX_COUNT = 2**24  # the whole numbers up to this one are exact in float32
MAX_LOG_WHOLE = 10**12  # whole numbers up to this one survive the logarithm in float64
_YEARS = (1500, 2200)
_PERCENTAGE = re.compile(r"%|pct|percent", re.IGNORECASE)
_IDENTIFIER = re.compile(r"(^|[\W_])(id|uuid|guid|index|key|rownames?|row)$|[a-z]I[dD]$|^unnamed: 0$|^$", re.IGNORECASE)


class Decision(NamedTuple):
    """What a column is taken for, and why."""

    kind: str  # a key of KINDS; "drop" to leave it out
    reason: str


class Facts(NamedTuple):
    """What the rules look at: the entries that are not missing, and how often each value occurs."""

    cells: Cells
    observed: np.ndarray
    levels: list[Any]  # the different values, in order
    counts: np.ndarray  # how often each occurs

    @property
    def is_whole(self) -> bool:
        """Whether all values are whole numbers."""
        return self.cells.group == NUMBER and not any(level % 1 for level in self.levels)


def facts_of(cells: Cells) -> Facts:
    """Return the facts about a column."""
    observed = cells.observed
    if cells.group in (EMPTY, OTHER):
        return Facts(cells, observed, [], np.zeros(0, int))
    if observed.dtype != object:
        levels, counts = np.unique(observed, return_counts=True)
        return Facts(cells, observed, levels.tolist(), counts)
    found: dict[Any, int] = {}
    for value in observed.tolist():
        found[value] = found.get(value, 0) + 1
    declared = cells.storage.categories
    levels = [level for level in declared if level in found or cells.storage.is_ordered] if declared else sorted(found)
    return Facts(cells, observed, levels, np.array([found.get(level, 0) for level in levels], int))


def decide(facts: Facts, requested: str = AUTO, is_for_all: bool = False, are_steps: bool = False) -> Decision:
    """Return the kind of a column.

    Args:
        facts: Of the column.
        requested: The kind that the user asks for, or "auto".
        is_for_all: Whether the user asks for one kind for all columns, some of which hold nothing to learn.
        are_steps: Whether the entries are steps of sequences. What they have in common says little about the next one,
            which may lie beyond all others, as in a trend: quantiles, which describe the shape of all, are not used.

    Raises:
        ValueError: The column cannot be of the kind asked for.
    """
    if requested == DROP:
        return Decision(DROP, "left out, as asked for")
    nothing = nothing_to_learn(facts)
    if nothing is not None:
        if requested != AUTO and not is_for_all:
            raise ValueError(
                f"likelihood: column {facts.cells.name!r} cannot be {requested!r}: it is {nothing}. Drop it."
            )
        return Decision(DROP, nothing)
    if requested != AUTO:
        return Decision(_checked(facts, requested), "as asked for")
    if facts.cells.storage.categories:
        return _labels(facts)
    rules = {BOOLEAN: _boolean, TEXT: _labels, NUMBER: _numbers, DATE: _dates, DURATION: _dates}
    found = rules[facts.cells.group](facts)
    if are_steps and found.kind == "quantile-gaussian":
        return _density(facts, found.reason.split(",")[0])
    return found


def nothing_to_learn(facts) -> str | None:
    """Return why a column holds nothing that can be learned; None if it does."""
    if facts.cells.group == OTHER:
        return f"of a type that is not supported ({facts.cells.storage.native}): neither numbers, text nor dates"
    if not len(facts.observed):
        return "empty: all entries are missing"
    if np.count_nonzero(facts.counts) == 1:
        return f"constant: every entry is {shown(facts.observed[0], 40)}"
    if facts.observed.dtype == np.float64 and are_constant(facts.observed.min(), facts.observed.max()):
        return f"constant up to rounding: every entry is about {facts.observed[0]:g}"
    return None


def _boolean(facts):
    return Decision("binary", "true or false")


def _dates(facts):
    what = "durations" if facts.cells.group == DURATION else "dates"
    return Decision("date", f"{what}, read as the time since the first")


def _labels(facts):
    num_levels, num_observed = np.count_nonzero(facts.counts), len(facts.observed)
    if num_levels == len(facts.levels) == 2:
        return Decision("binary", f"two values, {_some(facts.levels)}")
    if facts.cells.storage.is_ordered and len(facts.levels) <= MAX_LEVELS:
        return Decision("ordinal", f"{len(facts.levels)} ordered categories")
    if num_observed >= MIN_ROWS_TO_JUDGE and num_levels == num_observed:
        return Decision(DROP, f"{IDENTIFIER}: every entry is different")
    if num_levels > MAX_LEVELS or (num_observed >= MIN_ROWS_TO_JUDGE and num_levels > num_observed / 2):
        values = f"{num_levels:,} different values in {num_observed:,} entries"
        return Decision(DROP, f"free text: {values}{_hint(facts)}")
    if facts.cells.storage.categories:
        return Decision("categorical", f"{num_levels} categories")
    return Decision("categorical", f"text with {num_levels} different values{_hint(facts)}")


def _hint(facts):
    """Say that text looks like numbers or dates, if all or nearly all of it does."""
    what, others = evidence.looks_like([str(level) for level in facts.levels])
    if not what:
        return ""
    if not others:
        return f"; they look like {what}: convert them to use them as such"
    return f"; all but {_some(others)} look like {what}: empty or change these cells to use the others as such"


def _numbers(facts):
    if len(facts.levels) == 2:
        return Decision("binary", f"two values, {_some(facts.levels)}")
    if facts.is_whole:
        return _whole_numbers(facts)
    num_levels = len(facts.levels)
    if num_levels <= MAX_STEPS and len(facts.observed) >= MIN_ROWS_PER_LEVEL * num_levels:
        return Decision("ordinal", f"only {num_levels} different numbers, {_some(facts.levels)}")
    return _bounded(facts) or _cells(facts, "numbers") or _density(facts, "numbers")


def _whole_numbers(facts):
    x, num_levels, low, high = facts.observed, len(facts.levels), facts.levels[0], facts.levels[-1]
    span = f"whole numbers from {low:.0f} to {high:.0f}"
    if _are_identifiers(facts):
        return Decision(DROP, f"{IDENTIFIER}: {span}, each once")
    has_enough = len(x) >= MIN_ROWS_PER_LEVEL * num_levels
    if x.dtype == object:
        if num_levels <= MAX_CODES and has_enough:
            return Decision("categorical", f"{num_levels} different whole numbers beyond 2^53, read as codes")
        raise ValueError(
            f"X: column {facts.cells.name!r} holds {shown(max(facts.levels, key=abs))}, beyond 2^53: floating point "
            f"cannot hold it exactly. Leave the column out, likelihood={{{facts.cells.name!r}: 'drop'}}, or ask for "
            "'categorical'."
        )
    if num_levels > MAX_CODES and (cells := _cells(facts, span)):
        return cells
    if low == 0 and high <= MAX_COUNT:
        few = num_levels <= MAX_CODES
        counted = _are_spread_like_counts(facts) if few else _have_a_long_tail(x)
        if counted:
            shape = "spread like counts" if few else "with a long tail"
            return Decision(_count_family(x), f"{span}, {shape}")
    if num_levels <= MAX_CODES and has_enough:
        if num_levels >= MIN_GRADES and high - low == num_levels - 1 and evidence.has_one_peak(facts.counts):
            return Decision("ordinal", f"{span}, most often {facts.levels[int(np.argmax(facts.counts))]:.0f}: a scale")
        return Decision("categorical", f"{span}, only {num_levels} different ones: read as codes")
    return _density(facts, span)


def _are_spread_like_counts(facts):
    is_last_rare = facts.counts[-1] <= MAX_LAST_SHARE * len(facts.observed)
    return is_last_rare and evidence.distance_from_counts(facts.observed) <= MAX_DISTANCE


def _have_a_long_tail(x):
    has_many_zeros = np.mean(x == 0) >= MIN_ZEROS and x.mean() > np.median(x)
    return has_many_zeros or evidence.skewness(x) >= MIN_SKEWNESS


def _count_family(x):
    return "negative-binomial" if evidence.is_over_dispersed(x) else "poisson"


def _are_identifiers(facts):
    """Whether whole numbers, each occurring once, number the rows; years do not."""
    x, num = facts.observed, len(facts.observed)
    if len(facts.levels) < num or num < MIN_ROWS_TO_JUDGE:
        return False
    low, high = facts.levels[0], facts.levels[-1]
    if _IDENTIFIER.search(facts.cells.name):
        return True
    if _YEARS[0] <= low and high <= _YEARS[1]:
        return False
    is_ascending = bool(np.all(x[1:] > x[:-1]))
    return high - low == num - 1 or (is_ascending and high - low < 2 * num)


def _bounded(facts):
    """Return "bounded" for shares, or numbers whose name says percent, that fill their range."""
    x = facts.observed
    is_percentage = bool(_PERCENTAGE.search(facts.cells.name)) and x.max() > 1
    end, what = (100, "percentages between 0 and 100") if is_percentage else (1, "shares between 0 and 1")
    fills = 0 <= x.min() < 0.05 * end and 0.95 * end < x.max() <= end
    if fills and np.mean((x == 0) | (x == end)) < 0.2:
        return Decision("bounded", f"{what} that come near both ends")
    return None


def _cells(facts, what):
    """Return a kind with cells for many numbers that no density fits: some are frequent, or the shape is unusual."""
    x = evidence.sample_values(facts.observed)
    if len(x) < MIN_ROWS_FOR_CELLS or evidence.gain_of_cells(x) < MIN_GAIN:
        return None
    share, value = facts.counts.max() / len(facts.observed), facts.levels[int(np.argmax(facts.counts))]
    detail = f"{share:.0%} are {value:g}" if share >= MIN_ZEROS else "of a shape that no density fits well"
    is_spiky = evidence.share_of_spikes(facts.counts) >= MIN_SPIKES
    return Decision("histogram" if is_spiky else "quantile-gaussian", f"{what}, {detail}")


def _density(facts, what):
    """Return the density that fits best, the normal one unless another is clearly better."""
    x = evidence.sample_values(facts.observed)
    low, high = facts.levels[0], facts.levels[-1]
    min_gain = max(MIN_GAIN, MIN_GAIN_IN_ALL / len(x))
    survives_log = not facts.is_whole or high <= MAX_LOG_WHOLE
    if low > 0 and survives_log and evidence.skewness(x) >= MIN_SKEWNESS and evidence.gain_of_logarithm(x) >= min_gain:
        return Decision("lognormal", f"{what}, positive and skewed to the right")
    if evidence.largest_share(x) < evidence.MAX_SPIKE and evidence.gain_of_heavy_tails(x) >= min_gain:
        return Decision("student-t", f"{what}, some far from the others")
    return Decision("gaussian", what)


def _checked(facts, requested):
    """Return the kind that a user asks for, "count" resolved; refuse it if the values do not allow it."""
    x, group = facts.observed, facts.cells.group
    is_number = group in (NUMBER, BOOLEAN) and x.dtype != object
    real, labels = ("gaussian", "student-t"), group in (TEXT, NUMBER, BOOLEAN)
    needs = {
        "gaussian": (is_number or group in (DATE, DURATION), "numbers or dates"),
        "student-t": (is_number or group in (DATE, DURATION), "numbers or dates"),
        "lognormal": (is_number and x.min() > 0, "numbers above 0"),
        "bounded": (is_number, "numbers"),
        "histogram": (is_number, "numbers"),
        "quantile-gaussian": (is_number, "numbers"),
        **dict.fromkeys(
            ("count", "poisson", "negative-binomial"),
            (is_number and x.min() >= 0 and facts.is_whole and x.max() <= MAX_COUNT, "whole numbers from 0 to 2^24"),
        ),
        "binary": (labels and len(facts.levels) == 2, "two different values"),
        "categorical": (labels and len(facts.levels) <= MAX_LEVELS, f"at most {MAX_LEVELS:,} different values"),
        "ordinal": (
            labels and len(facts.levels) <= MAX_LEVELS and (group != TEXT or bool(facts.cells.storage.categories)),
            f"numbers with at most {MAX_LEVELS:,} different values, or text whose order is known, such as "
            "pandas.Categorical(values, categories, ordered=True)",
        ),
        "date": (group in (DATE, DURATION), "dates"),
    }
    allowed, needed = needs[requested]
    if not allowed:
        values = f"{WORDS[group]}, {len(facts.levels):,} different values such as {_some(facts.levels)}"
        raise ValueError(
            f"likelihood: column {facts.cells.name!r} cannot be {requested!r}, which needs {needed}: {values}. "
            "Choose another kind, such as 'auto'."
        )
    if requested == "count":
        return _count_family(x)
    return "date" if group in (DATE, DURATION) and requested not in real else requested


def _some(levels, most=3):
    shown_levels = [f"{level:g}" if isinstance(level, float) else shown(level, 20) for level in levels[:most]]
    return ", ".join(shown_levels) + ", ..." * (len(levels) > most)
