"""Measures of a column's numbers that decide between families."""

import numpy as np
from scipy import stats

MAX_VALUES = 10_000  # that are looked at, evenly spaced
MAX_STEPS_OF_EM = 30
DEGREES_OF_FREEDOM = 3.0  # a heavy tail that still has a variance
MAX_SPIKE = 0.3  # share of the most frequent number; beyond, a density says little about the tails


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
    x = (values - np.median(values)) / values.std()
    loc, scale, df = 0.0, 1.0, DEGREES_OF_FREEDOM
    for _ in range(MAX_STEPS_OF_EM):
        weights = (df + 1) / (df + ((x - loc) / scale) ** 2)
        loc = np.average(x, weights=weights)
        scale = np.sqrt(np.mean(weights * (x - loc) ** 2))
    return float(np.mean(stats.t.logpdf(x, df, loc, scale)) - np.mean(stats.norm.logpdf(x, x.mean(), x.std())))


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
