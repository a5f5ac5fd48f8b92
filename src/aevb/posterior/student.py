"""A multivariate Student t with the moments of the posterior, found by importance sampling.

The bound's best Gaussian has lighter tails than most posteriors, so that a few draws get most of the weight. A
Student t with the weighted mean and covariance of its own draws covers them: adaptive importance sampling (Cappé,
Douc, Guillin, Marin and Robert, 2008).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from aevb.posterior.gaussian import Gaussian

FIRST_DF, LEAST_DF, MOST_DF = 10.0, 5.0, 20.0  # degrees of freedom


class Student(NamedTuple):
    """A Student t over points u = mean + F epsilon, with epsilon a standard one."""

    mean: np.ndarray  # (D,)
    factor: np.ndarray  # (D, D) or (D,)
    df: float

    family = "student-t"

    @classmethod
    def around(cls, q: Gaussian) -> "Student":
        """Return the one with the mean and the scale of a Gaussian, but heavier tails."""
        return cls(q.mean, q.factor, FIRST_DF)

    @classmethod
    def matched(cls, points: np.ndarray, weights: np.ndarray, before: "Student") -> "Student":
        """Return the one with the moments of weighted points, (S, D) and (S,).

        The covariance is pulled towards the previous one as if that had been seen D times, because there may be few
        effective draws. The degrees of freedom match Mardia's kurtosis, (df - 2) / (df - 4) times a Gaussian's.
        """
        D, ess = points.shape[1], 1 / np.sum(weights**2)
        mean = weights @ points
        deviations = points - mean
        covariance = (weights[:, None] * deviations).T @ deviations
        previous = before.covariance()
        covariance = (ess * covariance + D * previous) / (ess + D)
        q = Gaussian.of_moments(mean, covariance)
        z = np.linalg.solve(q.factor, deviations.T)
        kurtosis = weights @ np.sum(z**2, axis=0) ** 2 / (D * (D + 2))
        df = float(np.clip(4 + 2 / max(kurtosis - 1, 1e-3), LEAST_DF, MOST_DF))
        return cls(mean, q.factor * np.sqrt((df - 2) / df), df)

    def covariance(self) -> np.ndarray:
        """Return the covariance, (D, D)."""
        return self.gaussian().covariance()

    def gaussian(self) -> Gaussian:
        """Return the Gaussian with the same mean and covariance."""
        factor = np.diag(self.factor) if self.factor.ndim == 1 else self.factor
        return Gaussian(self.mean, factor * np.sqrt(self.df / (self.df - 2)))

    def draw(self, rng: np.random.Generator, num_draws: int) -> tuple[np.ndarray, np.ndarray]:
        """Return points (S, D) and log q there, (S,)."""
        epsilon = rng.standard_normal((num_draws, len(self.mean)))
        epsilon /= np.sqrt(rng.chisquare(self.df, num_draws) / self.df)[:, None]
        return self._scaled().transform(epsilon), self._log_prob(epsilon)

    def log_prob(self, points: np.ndarray) -> np.ndarray:
        """Return log q at points, (S,)."""
        return self._log_prob(self._scaled().noise(points))

    def _scaled(self):
        return Gaussian(self.mean, self.factor)

    def _log_prob(self, epsilon):
        D, df = epsilon.shape[1], self.df
        constant = gammaln((df + D) / 2) - gammaln(df / 2) - D / 2 * np.log(df * np.pi) - self._scaled().log_det()
        return constant - (df + D) / 2 * np.log1p(np.sum(epsilon**2, axis=1) / df)
