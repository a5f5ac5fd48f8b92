"""Modes that are apart, and whether a fitted posterior has their mass."""

import numpy as np

from aevb.inference.importance import log_mean_exp
from aevb.posterior.density import Density
from aevb.posterior.gaussian import Gaussian
from aevb.posterior.weighing import Weighted

VALLEY = 2.0  # nats between two modes; on a ridge without one, the ends of paths are parts of the same mode
LIKELY = 5.0  # nats below the best mode: a share of about 1%
NUM_DRAWS = 256  # of a mode's Gaussian
TOO_LOW = np.log(10)  # how far q is below the posterior at points that it does not cover, in nats
SMALLEST = 0.01  # share of the mass that matters
VISITED = 0.2  # share of that mass which chains must have, to have been there


def apart(density: Density, modes: list[Gaussian], bounds: list[float]) -> list[Gaussian]:
    """Return the modes that are far from each other, with a valley between them; the best by its bound comes first."""
    found: list[Gaussian] = []
    for q, bound in zip(modes, bounds, strict=True):
        D = len(q.mean)
        far = [
            np.sum(other.noise(q.mean[None]) ** 2) > 9 * (D + 5) and _valley(density, q.mean, other.mean) > VALLEY
            for other in found
        ]
        if np.isfinite(bound) and bound > bounds[0] - LIKELY and all(far):
            found.append(q)
    return found


def missed(
    density: Density, modes: list[Gaussian], weighted: Weighted, chains: np.ndarray | None, rng: np.random.Generator
) -> list[float]:
    r"""Return the share of the posterior's mass near each mode that the draws do not have, if it is more than 1%.

    .. math:: E_{q_2(u)}\left[\frac{p(X, u)}{q_2(u)} 1[p(X, u) > 10 Z q(u)]\right] / Z

    with the Gaussian :math:`q_2` of the mode, and the weights' estimate of Z. A second end of paths is not always a
    second mode: that of a hierarchy, where the scale of the groups is nearly zero, is part of what a good q covers.

    Args:
        density: The log density.
        modes: The Gaussians of modes that are apart.
        weighted: The draws of q.
        chains: The draws of chains, (S, D); a mode that they have visited is not missed. None if there are none.
        rng: Random generator.
    """
    if len(modes) < 2:
        return []
    log_z = float(log_mean_exp(weighted.log_weights))

    def is_unseen(points, log_p):
        return log_p - weighted.q.log_prob(points) - log_z > TOO_LOW

    unseen_by_q = None
    found = []
    for q in modes:
        points, log_q = q.draw(rng, NUM_DRAWS)
        log_p = density(points)[0]
        ratios = np.exp(np.minimum(log_p - log_q - log_z, 50.0))
        ratios = np.minimum(ratios, ratios.mean() * np.sqrt(NUM_DRAWS))  # a single large one says little
        mass = float(np.mean(ratios * is_unseen(points, log_p)))
        if mass <= SMALLEST:
            continue
        if chains is not None:
            if unseen_by_q is None:
                unseen_by_q = is_unseen(chains, density(chains)[0])
            D = len(q.mean)
            near = np.sum(q.noise(chains) ** 2, axis=1) < D + 4 * np.sqrt(2 * D) + 4  # 99.9% of the Gaussian
            if np.mean(near & unseen_by_q) > VISITED * mass / (1 + mass):
                continue
        found.append(mass)
    return [mass / (1 + sum(found)) for mass in found]


def _valley(density, one, other):
    """Return how far the log density falls below the lower of two points on the line between them."""
    shares = np.linspace(0, 1, 15)[:, None]
    values, _ = density(one + shares * (other - one))
    return min(values[0], values[-1]) - values.min()
