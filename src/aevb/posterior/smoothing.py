"""A start for densities without a useful mode: paths up the bound of independent Gaussians instead of the density.

The log density of a hierarchy grows without limit where the groups are equal and their scale is zero, and paths up it
end there. The bound does not: it averages over a neighborhood. With fixed noise it is an ordinary function of means and
log scales, which L-BFGS maximizes (Giordano, Ingram and Broderick, "Black box variational inference with a
deterministic objective", 2024).
"""

import numpy as np

from aevb.posterior.density import Density
from aevb.posterior.gaussian import Gaussian
from aevb.posterior.paths import SPREAD, follow

NUM_DRAWS = 32  # of fixed noise
SCALES = (0.1, 1.0)  # of the Gaussians at the beginning, path by path
LIMITS = (-30.0, 10.0)  # of log scales


class Smoothed:
    r"""The bound of N(m, diag(s^2)) with fixed noise, as a function of points (m, log s), (S, 2 D), and its gradient.

    .. math:: \frac{1}{L} \sum_l \log p(m + s \odot \epsilon_l) + \sum_i \log s_i

    Args:
        density: The log density.
        rng: Random generator of the noise, which comes in pairs of opposite sign.
    """

    def __init__(self, density: Density, rng: np.random.Generator):
        self.density, self.size = density, 2 * density.size
        epsilon = rng.standard_normal((NUM_DRAWS // 2, density.size))
        self._epsilon = np.concatenate([epsilon, -epsilon])

    def __call__(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the values (S,) and gradients (S, 2 D); minus infinity and 0 where one of them is not finite."""
        D, epsilon = self.density.size, self._epsilon
        m, log_s = points[:, :D], np.clip(points[:, D:], *LIMITS)
        s = np.exp(log_s)
        values, g = self.density((m[:, None] + s[:, None] * epsilon).reshape(-1, D))
        values, g = values.reshape(-1, NUM_DRAWS).mean(1) + log_s.sum(1), g.reshape(-1, NUM_DRAWS, D)
        with np.errstate(over="ignore", invalid="ignore"):
            gradients = np.concatenate([g.mean(1), s * (g * epsilon).mean(1) + 1], axis=1)
        is_finite = np.isfinite(values) & np.isfinite(gradients).all(axis=1)
        return np.where(is_finite, values, -np.inf), np.where(is_finite[:, None], gradients, 0.0)


def smoothed_start(density: Density, rng: np.random.Generator) -> Gaussian | None:
    """Return the independent Gaussian with the highest bound that paths from random points find; None for none."""
    num_paths, D = 4 if density.is_cheap else 2, density.size
    x = np.zeros((num_paths, 2 * D))
    x[1:, :D] = rng.uniform(-SPREAD, SPREAD, (num_paths - 1, D))
    x[:, D:] = np.log(np.resize(SCALES, num_paths))[:, None]
    smoothed = Smoothed(density, rng)
    f, g = smoothed(x)
    good = np.isfinite(f)
    if not good.any():
        return None
    end = follow(smoothed, x[good], f[good], g[good])[0].points[-1]
    return Gaussian(end[:D], np.exp(np.clip(end[D:], *LIMITS)))
