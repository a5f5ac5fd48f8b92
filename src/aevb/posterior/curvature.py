"""Curvature of the log density, from differences of gradients, and the Gaussian that it implies."""

import numpy as np

from aevb.posterior.density import Density

STEP = (
    0.05  # of the differences, in standard deviations: a preconditioner needs no more digits, and has the right scale
)
NEWTON_STEPS = 30


def precision(density: Density, center: np.ndarray, factor: np.ndarray) -> np.ndarray:
    r"""Return minus the Hessian at a point in the coordinates w of u = center + factor w, (D, D).

    .. math:: \Lambda_{ij} \approx -\frac{g_j(u + h f_i) - g_j(u - h f_i)}{2 h}

    Args:
        density: The log density.
        center: The point, (D,).
        factor: Its columns are the directions, about one standard deviation long, (D, D).
    """
    D = len(center)
    shifts = STEP * factor.T
    _, g = density(np.concatenate([center + shifts, center - shifts]))
    found = -(g[:D] - g[D:]) @ factor / (2 * STEP)
    return (found + found.T) / 2


def units(density: Density, center: np.ndarray) -> np.ndarray:
    """Return a rough length for each variable, (D,): one over the root of its curvature, found by a few differences."""
    scale = 1e-4 * np.maximum(np.abs(center), 1.0)
    for _ in range(3):
        values, g = density(np.concatenate([center + np.diag(scale), center - np.diag(scale)]))
        D = len(center)
        curvature = np.abs(np.diag(g[:D] - g[D:])) / (2 * scale)
        ok = np.isfinite(values[:D]) & np.isfinite(values[D:]) & (curvature > 0)
        scale = np.where(ok, np.clip(curvature, 1e-24, 1e24) ** -0.5 * STEP, scale / 10)
    return scale / STEP


def probed_units(density: Density, center: np.ndarray, rng: np.random.Generator, num_probes: int = 64) -> np.ndarray:
    r"""Return a length for each of many variables, (D,), from random directions (Bekas, Kokiopoulou and Saad, 2007).

    .. math:: \mathrm{diag}(H) = E_z[z \odot H z], \qquad z_i = \pm 1
    """
    scale = 1e-4 * np.maximum(np.abs(center), 1.0)
    for _ in range(3):
        z = rng.choice([-1.0, 1.0], (num_probes, len(center)))
        _, up = density(center + scale * z)
        _, down = density(center - scale * z)
        curvature = np.mean(z * (down - up) / (2 * scale), axis=0) / scale
        typical = np.median(np.abs(curvature * scale**2)) + 1e-12
        curvature = np.maximum(curvature, 0.01 * typical / scale**2)
        scale = STEP * curvature**-0.5
    return scale / STEP


def laplace(density: Density, center: np.ndarray, factor: np.ndarray | None = None) -> np.ndarray:
    """Return a factor C of the covariance C C^T of the Gaussian with the curvature at a point, (D, D).

    Directions of negative curvature get the spread that the same positive one would give, and flat ones a wide spread.
    """
    if factor is None:
        factor = np.diag(units(density, center))
    for _ in range(2):  # the second time in directions that are about one standard deviation long
        values, vectors = np.linalg.eigh(precision(density, center, factor))
        factor = factor @ (vectors * np.maximum(np.abs(values), 1e-4) ** -0.5)
    return factor


def polish(density: Density, center: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Climb to the nearest mode by Newton's method, which no rescaling of the variables changes.

    Returns:
        The mode (D,), the factor of its covariance (D, D), and the log density there.
    """
    factor = laplace(density, center)
    (value,), (g,) = density(center[None])
    lengths = 0.25 ** np.arange(density.block)[: min(density.block, 12)]
    for _ in range(NEWTON_STEPS):
        step = factor @ (factor.T @ g)  # the Newton step, with the curvature made positive
        decrement = g @ step
        if not decrement > 1e-6:  # twice the height that is left, in nats
            break
        candidates = center + lengths[:, None] * step
        values, gradients = density(candidates)
        best = int(np.argmax(values))
        if not values[best] > value:
            break
        center, value, g = candidates[best], values[best], gradients[best]
        factor = laplace(density, center, factor)
    return center, factor, float(value)
