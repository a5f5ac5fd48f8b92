"""Measures of a column's numbers that decide between families, and what text looks like."""

import re

import numpy as np
from scipy import stats
from scipy.ndimage import median_filter

from aevb.models.cells import find_cells, log_density, shares

MAX_VALUES = 10_000  # that are looked at, evenly spaced
MAX_STEPS_OF_EM = 30
DEGREES_OF_FREEDOM = 3.0  # a heavy tail that still has a variance
MIN_SCALE = 1e-3  # of a Student t density, in standard deviations of the entries
NEIGHBOURS = 3  # different values on each side
MIN_SPIKE = 0.05  # share of the entries
STANDS_OUT = 3.0  # times as many entries as the values next to it have
FEW = 0.5  # of the largest count
MAX_ODD_ONES = 0.05  # share of different values that are not numbers, or not dates, in a column of these
MAX_SPIKE = 0.3  # share of the most frequent number; beyond, a density says little about the tails
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?[./]\d\d?[./]\d{2,4}( .*)?")


def sample_values(values: np.ndarray) -> np.ndarray:
    """Return numbers from all parts of a column, at most 10,000."""
    if len(values) <= MAX_VALUES:
        return values
    return values[np.linspace(0, len(values) - 1, MAX_VALUES).astype(int)]


def skewness(values: np.ndarray) -> float:
    """Return the third standardized moment."""
    return float(np.mean(((values - values.mean()) / values.std()) ** 3))


def gain_of_logarithm(values: np.ndarray) -> float:
    r"""Return by how many nats per entry a log-normal density fits better than a normal one.

    .. math:: \log \operatorname{std}(x) - \log \operatorname{std}(\log x) - \operatorname{mean}(\log x)

    Args:
        values: (n,), positive.
    """
    logs = np.log(values)
    return float(np.log(values.std()) - np.log(logs.std()) - logs.mean())


def gain_of_heavy_tails(values: np.ndarray) -> float:
    """Return by how many nats per entry a Student t density of 3 degrees of freedom fits better than a normal one.

    Location and scale are those of maximum likelihood, found by expectation maximization.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> gain_of_heavy_tails(rng.normal(size=10_000)) < 0 < gain_of_heavy_tails(rng.standard_t(3, size=10_000))
        True
    """
    x, (loc, scale) = values, _student_t(values)
    gains = stats.t.logpdf(x, DEGREES_OF_FREEDOM, loc, scale) - stats.norm.logpdf(x, x.mean(), x.std())
    return float(np.mean(gains))


def _student_t(values):
    """Return location and scale of a Student t density of 3 degrees of freedom, by expectation maximization."""
    shift, unit = np.median(values), values.std() or 1.0
    x, loc, scale, df = (values - shift) / unit, 0.0, 1.0, DEGREES_OF_FREEDOM
    for _ in range(MAX_STEPS_OF_EM):
        weights = (df + 1) / (df + ((x - loc) / scale) ** 2)
        loc = np.average(x, weights=weights)
        scale = max(np.sqrt(np.mean(weights * (x - loc) ** 2)), MIN_SCALE)  # half of the entries may be equal
    return shift + unit * loc, unit * scale


def gain_of_cells(values: np.ndarray) -> float:
    """Return by how many nats per entry cells fit better than a normal, log-normal, Student t or count density.

    All learn from every other entry and are judged by the rest. A probability of a whole number is a density: that of
    an interval of width 1.

    Example:
        >>> hours = np.random.default_rng(0).normal(40, 12, size=4000).round()
        >>> gain_of_cells(hours) < 0.1 < gain_of_cells(np.where(np.arange(4000) % 3, 40, hours))
        True
    """
    train, test = values[::2], values[1::2]
    mean, std = train.mean(), train.std() or 1.0
    loc, scale = _student_t(train)
    fits = [stats.norm.logpdf(test, mean, std), stats.t.logpdf(test, DEGREES_OF_FREEDOM, loc, scale)]
    if values.min() > 0:
        logs = np.log(train)
        fits.append(stats.norm.logpdf(np.log(test), logs.mean(), logs.std() or 1.0) - np.log(test))
    elif values.min() == 0 and not np.any(values % 1):
        variance = max(train.var(), 1.01 * mean)
        fits.append(stats.nbinom.logpmf(test, mean**2 / (variance - mean), mean / variance))
    cells = find_cells(train)
    found = log_density(test, cells.edges, shares(train, cells.edges), float(std))
    return float(np.mean(found) - max(map(np.mean, fits)))


def share_of_spikes(counts: np.ndarray) -> float:
    """Return the share of entries at frequent values that stand out from the values next to them.

    Rounded numbers of a smooth distribution can all be frequent, but none stands out.

    Args:
        counts: How often each different value occurs, in the order of the values.

    Example:
        >>> rounded = np.bincount(np.random.default_rng(0).binomial(40, 0.5, size=4000))
        >>> share_of_spikes(rounded), share_of_spikes(rounded + 4000 * (np.arange(len(rounded)) == 20)) > 0.4
        (0.0, True)
    """
    beside = np.r_[np.ones(NEIGHBOURS, bool), False, np.ones(NEIGHBOURS, bool)]
    around = median_filter(counts.astype(np.float64), footprint=beside, mode="mirror")
    is_spike = (counts >= MIN_SPIKE * counts.sum()) & (counts >= STANDS_OUT * around)
    return float(counts[is_spike].sum() / counts.sum())


def has_one_peak(counts: np.ndarray) -> bool:
    """Whether counts rise from few to the largest and fall to few, as those of grades do, and of codes by chance only.

    Example:
        >>> has_one_peak(np.array([1, 5, 9, 2])), has_one_peak(np.array([5, 1, 9, 2])), has_one_peak(np.ones(7))
        (True, False, False)
    """
    peak = int(np.argmax(counts))
    rises, falls = np.all(np.diff(counts[: peak + 1]) >= 0), np.all(np.diff(counts[peak:]) <= 0)
    return bool(rises and falls and max(counts[0], counts[-1]) < FEW * counts[peak])


def largest_share(values: np.ndarray) -> float:
    """Return the share of the most frequent number."""
    return float(np.unique(values, return_counts=True)[1].max() / len(values))


def is_over_dispersed(counts: np.ndarray) -> bool:
    """Whether the variance exceeds the mean by more than half, unlike a Poisson variable's."""
    return bool(counts.var() > 1.5 * counts.mean())


def distance_from_counts(counts: np.ndarray) -> float:
    """Return the total variation distance from the Poisson or negative binomial variable of the same two moments.

    Example:
        >>> days_of_the_week = np.arange(700) % 7
        >>> distance_from_counts(days_of_the_week) > 0.2 > distance_from_counts(np.repeat([0, 1, 2], [70, 22, 8]))
        True
    """
    mean, variance = counts.mean(), counts.var()
    numbers = np.arange(int(counts.max()) + 1)
    shares = np.bincount(counts.astype(int)) / len(counts)
    expected = stats.poisson.pmf(numbers, mean)
    if is_over_dispersed(counts):
        expected = stats.nbinom.pmf(numbers, mean**2 / (variance - mean), mean / variance)
    return float(np.maximum(shares - expected, 0).sum())


def looks_like(texts: list[str]) -> tuple[str, list[str]]:
    """Return whether all texts, or nearly all, look like "numbers" or like "dates", else "", and those that do not.

    Example:
        >>> looks_like(["1", "2.5", "-3"]), looks_like(["red", "2"])
        (('numbers', []), ('', []))
    """
    for what, fits in (("numbers", _is_number), ("dates", _DATE.fullmatch)):
        others = [text for text in texts if not fits(text)]
        if len(others) <= MAX_ODD_ONES * len(texts):
            return what, others
    return "", []


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
