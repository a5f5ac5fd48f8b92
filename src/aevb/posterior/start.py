"""Where q starts: the best of several modes and points on the way to them, with the curvature there as its spread."""

from typing import NamedTuple

import numpy as np

from aevb.posterior.curvature import laplace, polish, probed_units
from aevb.posterior.density import Density
from aevb.posterior.gaussian import MAX_BAD, Gaussian, maximize, residual
from aevb.posterior.modes import apart
from aevb.posterior.paths import climb
from aevb.posterior.smoothing import smoothed_start

MAX_FULL = 500  # variables up to which covariances are matrices
NUM_POLISHED = 4  # ends of paths that are followed to their mode
NUM_ON_THE_WAY = 6  # points of the best path that are tried too
NUM_DRAWS = 64  # for the estimate of the bound at each candidate
NUM_TEST = 256  # draws that decide whether the start is near an optimum of the bound
FAR = 1.0  # standard deviations by which a mean would move, or a factor e by which a standard deviation would grow
NUM_TRIED = 553  # most steps from each of two starts


class Start(NamedTuple):
    """The Gaussian to start from, and what else was found."""

    q: Gaussian
    lower_bound: float  # its estimate there
    modes: list[Gaussian]  # that are apart; see `aevb.posterior.modes`


def find_start(density: Density, rng: np.random.Generator) -> Start:
    """Follow paths up the log density from random points, and return the Gaussian with the best bound.

    The mode itself may be far from the mass, or at infinity, as in a funnel; so points on the way are tried as well. If
    the best of these Gaussians would still move by more than its own standard deviation, paths up the bound are tried,
    and the better one after a few steps is the start.

    Args:
        density: The log density.
        rng: Random generator.
    """
    start = _from_modes(density, rng)
    at = residual(density, start.q, rng, NUM_TEST)
    if at.share_bad < MAX_BAD and at.largest < FAR:
        return start
    other = smoothed_start(density, rng)
    if other is None:
        return start
    rivals = [maximize(density, q, rng, NUM_TRIED) for q in (start.q, _in_form_of(start.q, other))]
    best = max(rivals, key=lambda fit: fit.history[-1]["lower_bound"])
    return start._replace(q=best.q, lower_bound=best.history[-1]["lower_bound"])


def _in_form_of(q, diagonal):
    return diagonal if q.is_diagonal else Gaussian(diagonal.mean, np.diag(diagonal.factor))


def _from_modes(density, rng):
    """Return the best Gaussian at the ends of paths up the density, and on the way there."""
    num_paths = 8 if density.is_cheap else 4
    paths = climb(density, rng, num_paths)
    if density.size > MAX_FULL:
        candidates = [Gaussian(path.points[-1], probed_units(density, path.points[-1], rng)) for path in paths[:2]]
        bounds = [_bound(density, q, rng) for q in candidates]
        best = int(np.argmax(bounds))
        return Start(candidates[best], bounds[best], [])
    modes: list[Gaussian] = []
    for path in _distinct(paths)[:NUM_POLISHED]:
        mode, factor, _ = polish(density, path.points[-1])
        modes.append(Gaussian(mode, factor))
    bounds = [_bound(density, q, rng) for q in modes]
    order = np.argsort(bounds)[::-1]
    modes, bounds = [modes[i] for i in order], [bounds[i] for i in order]
    separate = apart(density, modes, bounds)
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
    return Start(q, bound, separate)


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
