"""Where to start: several L-BFGS paths up the log joint from random points, all in one block.

Zhang, Carpenter, Gelman and Vehtari, "Pathfinder: parallel quasi-Newton variational inference" (2022) chooses among the
points of such paths by an estimate of the bound; here the Gaussian at a point has the curvature measured there.
"""

from typing import NamedTuple

import numpy as np

from aevb.posterior.density import Density

MEMORY = 8  # pairs of steps and gradients that a path remembers
MAX_ITERATIONS = 150
STEPS = 0.25 ** np.arange(4)  # fractions of a step that are tried at once
SPREAD = 2.0  # starts are uniform within this distance of 0, as in Stan
NUM_TRIES = 20  # blocks of random points in which a finite log joint is looked for


class Path(NamedTuple):
    """The points of one path, in the order of their log densities."""

    points: np.ndarray  # (T, D)
    values: np.ndarray  # (T,)


def climb(density: Density, rng: np.random.Generator, num_paths: int) -> list[Path]:
    """Follow several paths from random points; return them, the highest end first.

    Raises:
        FloatingPointError: The log density is finite nowhere near the origin.
    """
    return follow(density, *starts(density, rng, num_paths))


def follow(density, x: np.ndarray, f: np.ndarray, g: np.ndarray) -> list[Path]:
    """Follow paths from points x, (P, D), with values f and gradients g; return them, the highest end first.

    Args:
        density: A function of points (S, D) that returns values (S,) and gradients (S, D).
        x: Where the paths start; changed in place, like `f` and `g`.
        f: (P,).
        g: (P, D).
    """
    P, D = x.shape
    points, values = [[row] for row in x], [[value] for value in f]
    pairs: list[list[tuple]] = [[] for _ in range(P)]
    going = np.ones(P, bool)
    radius = np.full(P, 1.0)  # length of the first step, in the units of the starts
    for _ in range(MAX_ITERATIONS):
        directions = np.stack([_direction(g[p], pairs[p], radius[p]) for p in range(P)])
        slopes = np.sum(directions * g, axis=1)
        candidates = x[:, None] + STEPS[:, None] * directions[:, None]  # (P, 4, D)
        new_f, new_g = density(candidates.reshape(-1, D))
        new_f, new_g = new_f.reshape(P, -1), new_g.reshape(P, -1, D)
        enough = new_f >= f[:, None] + 1e-4 * STEPS * slopes[:, None]
        for p in np.flatnonzero(going):
            if not enough[p].any():
                if not pairs[p] and radius[p] < 1e-8:
                    going[p] = False
                pairs[p], radius[p] = [], radius[p] * STEPS[-1] / 4  # forget the curvature, and try a shorter step
                continue
            i = int(np.argmax(np.where(enough[p], new_f[p], -np.inf)))
            step, change = candidates[p, i] - x[p], g[p] - new_g[p, i]
            if step @ change > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
                pairs[p] = [*pairs[p], (step, change)][-MEMORY:]
            elif not pairs[p]:
                radius[p] *= 2
            gain = new_f[p, i] - f[p]
            x[p], f[p], g[p] = candidates[p, i], new_f[p, i], new_g[p, i]
            points[p].append(x[p].copy())
            values[p].append(f[p])
            going[p] = gain > 1e-9 * (1 + abs(f[p])) or slopes[p] > 1e-3
        if not going.any():
            break
    paths = [Path(np.array(points[p]), np.array(values[p])) for p in range(P)]
    return sorted(paths, key=lambda path: -path.values[-1])


def starts(density, rng, num_paths):
    """Return points with finite log density, (P, D), with it and its gradient; the first tried is the origin."""
    found, spread, size = [], SPREAD, max(num_paths, density.block)
    for attempt in range(NUM_TRIES):
        points = rng.uniform(-spread, spread, (size, density.size))
        points[0] = 0.0 if attempt == 0 else points[0]
        values, gradients = density(points)
        good = np.flatnonzero(np.isfinite(values))
        found += [(points[i], values[i], gradients[i]) for i in good[: num_paths - len(found)]]
        if len(found) == num_paths:
            break
        spread *= 0.8
    if not found:
        raise FloatingPointError("the log joint is finite at none of the random points")
    found += [found[i % len(found)] for i in range(num_paths - len(found))]
    return tuple(np.array(part) for part in zip(*found, strict=True))


def _direction(g, pairs, radius):
    """Return the direction of L-BFGS for the gradient g of a function to maximize (Nocedal, 1980)."""
    q, remembered = g.copy(), []
    for step, change in reversed(pairs):
        rho = 1 / (step @ change)
        alpha = rho * (step @ q)
        q = q - alpha * change
        remembered.append((rho, alpha))
    if not pairs:
        return radius * g / max(np.linalg.norm(g), 1e-300)
    step, change = pairs[-1]
    q = q * (step @ change) / (change @ change)
    for (step, change), (rho, alpha) in zip(pairs, reversed(remembered), strict=True):
        q = q + step * (alpha - rho * (change @ q))
    return q
