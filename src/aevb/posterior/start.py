"""Where q starts: the best of several modes and points on the way to them, with the curvature there as its spread."""

from typing import NamedTuple

import numpy as np

from aevb.posterior.curvature import laplace, polish, probed_units
from aevb.posterior.density import Density
from aevb.posterior.gaussian import Gaussian, residual
from aevb.posterior.paths import climb

MAX_FULL = 500  # variables up to which covariances are matrices
NUM_POLISHED = 4  # ends of paths that are followed to their mode
NUM_ON_THE_WAY = 6  # points of the best path that are tried too
NUM_DRAWS = 64  # for the estimate of the bound at each candidate
VALLEY = 2.0  # nats between two modes; on a ridge without one, the ends of paths are parts of the same mode
LIKELY = 5.0  # nats below the best mode: a share of about 1%


class Start(NamedTuple):
    """The Gaussian to start from, and what else was found."""

    q: Gaussian
    lower_bound: float  # its estimate there
    num_modes: int  # with more than about 1% of the mass, by their Gaussians
    shares: list[float]  # their shares, the largest first


def find_start(density: Density, rng: np.random.Generator) -> Start:
    """Follow paths up the log density from random points, and return the Gaussian with the best bound.

    The mode itself may be far from the mass, or at infinity, as in a funnel; so points on the way are tried as well.

    Args:
        density: The log density.
        rng: Random generator.
    """
    num_paths = 8 if density.is_cheap else 4
    paths = climb(density, rng, num_paths)
    if density.size > MAX_FULL:
        candidates = [Gaussian(path.points[-1], probed_units(density, path.points[-1], rng)) for path in paths[:2]]
        bounds = [_bound(density, q, rng) for q in candidates]
        best = int(np.argmax(bounds))
        return Start(candidates[best], bounds[best], 1, [1.0])
    modes: list[Gaussian] = []
    for path in _distinct(paths)[:NUM_POLISHED]:
        mode, factor, _ = polish(density, path.points[-1])
        modes.append(Gaussian(mode, factor))
    bounds = [_bound(density, q, rng) for q in modes]
    order = np.argsort(bounds)[::-1]
    modes, bounds = [modes[i] for i in order], [bounds[i] for i in order]
    shares = _shares(density, modes, bounds)
    points = paths[0].points
    for i in np.unique(np.linspace(0, len(points) - 1, NUM_ON_THE_WAY + 2).astype(int)[1:-1]):
        q = Gaussian(points[i], laplace(density, points[i]))
        modes.append(q)
        bounds.append(_bound(density, q, rng))
    best = int(np.argmax(bounds))
    q, bound = modes[best], bounds[best]
    for _ in range(10):  # a Gaussian that reaches to where the model is not defined
        if np.isfinite(bound):
            break
        q = Gaussian(q.mean, q.factor / 2)
        bound = _bound(density, q, rng)
    return Start(q, bound, len(shares), shares)


def _bound(density, q, rng):
    """Estimate the bound; minus infinity if a fifth of the draws is where the model is not defined."""
    at = residual(density, q, rng, NUM_DRAWS)
    return at.lower_bound if at.share_bad < 0.2 else -np.inf


def _distinct(paths):
    """Return the paths that end in different places; modes that are mirror images have the same value."""
    found = []
    for path in paths:
        end, value = path.points[-1], path.values[-1]
        if all(
            abs(value - other.values[-1]) > 0.05 or (np.abs(end - other.points[-1]) > 0.05 * (1 + np.abs(end))).any()
            for other in found
        ):
            found.append(path)
    return found


def _shares(density, modes, bounds):
    """Return the shares of the mass of modes that are apart, with a valley between them, by their bounds."""
    apart: list[int] = []
    for i, q in enumerate(modes):
        D = len(q.mean)
        far = [
            np.sum(modes[j].noise(q.mean[None]) ** 2) > 9 * (D + 5) and _valley(density, q.mean, modes[j].mean) > VALLEY
            for j in apart
        ]
        if np.isfinite(bounds[i]) and bounds[i] > bounds[0] - LIKELY and all(far):
            apart.append(i)
    weights = np.exp([bounds[i] - bounds[0] for i in apart]) if apart else np.ones(1)
    return [float(share) for share in weights / weights.sum()]


def _valley(density, one, other):
    """Return how far the log density falls below the lower of two points on the line between them."""
    shares = np.linspace(0, 1, 15)[:, None]
    values, _ = density(one + shares * (other - one))
    return min(values[0], values[-1]) - values.min()
