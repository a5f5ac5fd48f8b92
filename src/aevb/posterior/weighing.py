"""Draws of q with their importance weights: how far they can be trusted, and draws of the posterior from them."""

from typing import Any, NamedTuple

import numpy as np

from aevb.inference.pareto import k_hat_threshold, smoothed_weights
from aevb.posterior.density import Density

NUM_DRAWS = 4000
MOST_DRAWS = (16_000, 4000)  # of a cheap model, and of one whose log joint takes long
ENOUGH = (0.025, 0.035)  # errors of means and of standard deviations that end drawing, in standard deviations
TRUSTED = (0.05, 0.07)  # errors above which the result is flagged
NEGLIGIBLE_GAP = 0.05  # nats


class Weighted(NamedTuple):
    """Draws of q with weights."""

    q: Any
    points: np.ndarray  # (S, D)
    log_weights: np.ndarray  # (S,): log p(X, v) - log q(v)
    weights: np.ndarray  # (S,): smoothed, they sum to 1
    k_hat: float
    errors: tuple[float, float]  # the largest of a mean and of a standard deviation, in standard deviations
    share_bad: float  # of the draws at which the log joint is not finite

    @property
    def effective(self) -> float:
        """Number of independent draws that the weighted ones are worth."""
        return float(1 / np.sum(self.weights**2))

    @property
    def gap(self) -> float:
        """An estimate of KL(q || posterior) from the draws, in nats."""
        good = self.log_weights[np.isfinite(self.log_weights)]
        top = good.max()
        return float(top + np.log(np.mean(np.exp(self.log_weights - top))) - good.mean())

    @property
    def is_covered(self) -> bool:
        """Whether k-hat is below its threshold."""
        return self.k_hat <= k_hat_threshold(len(self.weights))

    def would_be_enough(self, most: int) -> bool:
        """Whether this many draws would have small errors."""
        shrink = np.sqrt(len(self.weights) / max(most, len(self.weights)))
        return self.is_covered and all(
            error * shrink <= limit for error, limit in zip(self.errors, ENOUGH, strict=True)
        )

    @property
    def score(self) -> float:
        """What orders the results of several families: the largest error, and k-hat above its threshold."""
        return max(self.errors) + max(self.k_hat - 0.5, 0.0) if np.isfinite(self.k_hat) else max(self.errors)


def most_draws(density: Density) -> int:
    """Return how many draws are affordable."""
    return MOST_DRAWS[0] if density.is_cheap else MOST_DRAWS[1]


def weigh(density: Density, q, rng: np.random.Generator, num_draws: int = NUM_DRAWS, most: int = 0) -> Weighted:
    """Draw from q and weight the draws; with `most`, draw more until the errors are small or there are as many."""
    points, log_q = q.draw(rng, num_draws)
    log_weights = density(points)[0] - log_q
    found = judged(density, q, points, log_weights)
    while len(found.weights) < most and not found.would_be_enough(0):
        points, log_q = q.draw(rng, len(found.weights))
        points = np.concatenate([found.points, points])
        log_weights = np.concatenate([found.log_weights, density(points[len(found.points) :])[0] - log_q])
        found = judged(density, q, points, log_weights)
    return found


def judged(density: Density, q, points: np.ndarray, log_weights: np.ndarray) -> Weighted:
    """Smooth the weights of draws, and estimate the errors of the moments that they give."""
    bad = float(np.mean(~np.isfinite(log_weights)))
    if bad == 1:
        raise FloatingPointError("the log joint is finite at none of q's draws")
    finite = log_weights[np.isfinite(log_weights)]
    rounding = 32 * np.finfo(np.float64 if density.precise else np.float32).eps * np.abs(finite).max()
    if bad == 0 and np.ptp(finite) < max(0.01, rounding):  # equal up to rounding: there is no tail
        weights, k_hat = np.full(len(points), 1 / len(points)), -np.inf
    else:
        weights, k_hat = smoothed_weights(log_weights)
    values = density.constrain(points)
    flat = [np.asarray(value, np.float64).reshape(len(points), -1) for value in _leaves(values)]
    return Weighted(q, points, log_weights, weights, k_hat, errors(np.concatenate(flat, axis=1), weights), bad)


def errors(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return the largest Monte Carlo errors of weighted means and standard deviations, in standard deviations.

    By the delta method; the second is half the relative error of a variance.

    Args:
        values: (S, D).
        weights: (S,), which sum to 1.

    Example:
        >>> values = np.random.default_rng(0).normal(size=(10_000, 1))
        >>> mean, std = errors(values, np.full(10_000, 1e-4))
        >>> print(f"{mean:.3f} {std:.3f}")  # exactly: 1 / sqrt(S) and 1 / sqrt(2 S)
        0.010 0.007
    """
    centred = (values - weights @ values) ** 2
    variance = weights @ centred
    positive = np.where(variance > 0, variance, 1.0)
    of_mean = np.sqrt(weights**2 @ centred / positive)
    of_std = np.sqrt(weights**2 @ (centred - variance) ** 2) / (2 * positive)
    return float(of_mean.max()), float(of_std.max())


def resampled(weights: np.ndarray, num_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return indices drawn in proportion to the weights: evenly spaced in their sum, then shuffled."""
    places = (rng.random() + np.arange(num_draws)) / num_draws
    order = rng.permutation(len(weights))
    cumulative = np.cumsum(weights[order])
    index = np.minimum(np.searchsorted(cumulative, places * cumulative[-1]), len(weights) - 1)
    return rng.permutation(order[index])


def _leaves(values):
    return list(values.values()) if isinstance(values, dict) else [values]
