"""log p(x) by integration over one or two latent dimensions: the reference for the other estimators."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.linalg import solve_triangular

from aevb.arrays import num_rows
from aevb.inference.parallel import leaves_a_core
from aevb.models import GenerativeModel
from aevb.models.compilation import compiled

NUM_POINTS = {1: 257, 2: 65}  # per side, by the number of dimensions
NUM_FIRST = {1: 4097, 2: 129}  # for the first grid, which must not miss the posterior
REFINEMENTS = 2
FIRST_WIDTH = 10.0  # prior standard deviations to each side
# How many nats below the largest value a grid spans: many at first, when the top of a peak may lie between the points.
# The second to last gives the last grid; the integral over it is the result, and the last depth is not used.
DEPTHS = (50.0, 50.0, 50.0, 25.0, 25.0)
POINTS_AT_ONCE = 256


class Grid(NamedTuple):
    """A box in coordinates u with z = centre + frame u."""

    centre: Array  # (J,)
    frame: Array  # (J, J), lower triangular
    lower: Array  # (J,), in u
    upper: Array  # (J,)


def quadrature(
    generative: GenerativeModel,
    recognition: None,
    x: Array,
    keys: Array,
    num_samples: int = 0,
    num_points: int | None = None,
    tolerance: float = 1e-3,
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    r"""Integrate p(z) p(x|z) over one or two latent dimensions by the trapezoidal rule on an adaptive grid.

    .. math:: \log p(x) = \log \int p(z)\, p(x|z)\, dz

    The first grid spans the prior. Each later grid spans the region within some tens of nats of the largest value on
    the previous one, in axes rotated and scaled to its covariance, which resolves sharp and correlated posteriors. For
    a smooth integrand that vanishes at the edges, the rule converges faster than any power of the spacing (Trefethen
    and Weideman, "The exponentially convergent trapezoidal rule", 2014). Where halving the resolution changes the
    result by more than the tolerance, the number of points is doubled.

    Args:
        generative: p(z) p(x|z).
        recognition: Not used.
        x: Datapoints, (N, D).
        keys: Not used.
        num_samples: Not used.
        num_points: Points per side of the last grid; None for 257 in one dimension and 65 in two.
        tolerance: In nats.

    Returns:
        Values (N,), errors (N,), which are the change with half the resolution plus the mass fraction at the edges and
        a bound on rounding, and the diagnostic ``num_points``.
    """
    del recognition, keys, num_samples
    (J,) = generative.latent_distribution(jax.tree.map(lambda array: array[0], x)).event_shape
    points = (num_points or NUM_POINTS[J]) | 1  # odd, so that every other point spans the same box
    num = np.full(num_rows(x), points)
    values, errors = _integrals(generative, x, num_points=points)
    for _ in range(REFINEMENTS):
        open_rows = np.flatnonzero(errors > tolerance)
        if not len(open_rows):
            break
        points = 2 * points - 1
        rows = np.resize(open_rows, 1 << (len(open_rows) - 1).bit_length())  # few shapes, few compilations
        finer, finer_errors = _integrals(generative, jax.tree.map(lambda array: array[rows], x), num_points=points)  # noqa: B023
        values[open_rows], errors[open_rows] = finer[: len(open_rows)], finer_errors[: len(open_rows)]
        num[open_rows] = points
    return values, errors, {"num_points": num}


def _integrals(generative, x, *, num_points):
    values, errors = _integrate(generative, x, num_points=num_points)
    return np.array(values, np.float64), np.array(errors, np.float64)


@leaves_a_core
@compiled("num_points")
def _integrate(generative, x, *, num_points):
    def integrate(x):
        prior = generative.latent_distribution(x)
        (J,) = prior.event_shape
        width, scale = jnp.full(J, FIRST_WIDTH), jnp.sqrt(jnp.broadcast_to(prior.variance, (J,)))
        first = Grid(jnp.broadcast_to(prior.mean, (J,)), jnp.diag(scale), -width, width)

        def step(grid, depth):
            log_joints = _log_joints(generative, x, grid, num_points)
            return _zoom(grid, log_joints, depth), _integral(grid, log_joints)

        grid = _zoom(first, _log_joints(generative, x, first, NUM_FIRST[J]), DEPTHS[0])
        _, (values, errors) = lax.scan(step, grid, jnp.array(DEPTHS[1:]))
        return values[-1], errors[-1]

    return jax.vmap(integrate)(x)


def _integral(grid, log_joints):
    """Return the log of the integral and its error, from half the resolution, the edges and rounding."""
    value = _trapezoid(grid, log_joints)
    coarse = _trapezoid(grid, log_joints[(slice(None, None, 2),) * log_joints.ndim])
    rounding = 10 * jnp.finfo(value.dtype).eps * (1 + jnp.abs(value))
    return value, jnp.abs(value - coarse) + _edge_share(log_joints) + rounding


def _log_joints(generative, x, grid, num_points):
    """Return log p(x, z) on the grid, (n,) or (n, n), computed in batches so that memory stays bounded."""
    u = _coordinates(grid, num_points)
    z = grid.centre + u.reshape(-1, u.shape[-1]) @ grid.frame.T
    values = lax.map(lambda z: generative.log_joint(x, z), z, batch_size=POINTS_AT_ONCE)
    return values.reshape(u.shape[:-1])


def _coordinates(grid, num_points):
    """Return u at the points, (n, 1) or (n, n, 2)."""
    sides = [jnp.linspace(low, high, num_points) for low, high in zip(grid.lower, grid.upper, strict=True)]
    return jnp.stack(jnp.meshgrid(*sides, indexing="ij"), axis=-1)


def _zoom(grid, log_joints, depth):
    """Return a grid over the points within `depth` nats of the largest, with a two-cell margin, in whitened axes."""
    n, J = log_joints.shape[0], log_joints.ndim
    u = _coordinates(grid, n).reshape(-1, J)
    log_joints = log_joints.ravel()
    cell = (grid.upper - grid.lower) / (n - 1)
    weights = jax.nn.softmax(log_joints)
    mean = weights @ u
    covariance = (weights[:, None] * (u - mean)).T @ (u - mean) + jnp.diag(cell**2 / 12)
    frame = jnp.linalg.cholesky(covariance)
    inverse = solve_triangular(frame, jnp.eye(J), lower=True)
    white = (u - mean) @ inverse.T
    is_kept = (log_joints > log_joints.max() - depth)[:, None]
    margin = 2 * jnp.abs(inverse) @ cell
    return Grid(
        grid.centre + grid.frame @ mean,
        grid.frame @ frame,
        jnp.min(jnp.where(is_kept, white, jnp.inf), axis=0) - margin,
        jnp.max(jnp.where(is_kept, white, -jnp.inf), axis=0) + margin,
    )


def _trapezoid(grid, log_joints):
    n = log_joints.shape[0]
    cell = (grid.upper - grid.lower) / (n - 1)
    log_volume = jnp.sum(jnp.log(cell)) + jnp.sum(jnp.log(jnp.diagonal(grid.frame)))
    ends = jnp.ones(n).at[jnp.array([0, -1])].set(0.5)
    weights = ends if log_joints.ndim == 1 else ends[:, None] * ends
    return jax.nn.logsumexp(log_joints, b=weights) + log_volume


def _edge_share(log_joints):
    """Return the fraction of the sum that lies on the edge, which should vanish."""
    share = jax.nn.softmax(log_joints.ravel()).reshape(log_joints.shape)
    inner = share[(slice(1, -1),) * log_joints.ndim]
    return jnp.maximum(share.sum() - inner.sum() - 1e-6, 0.0)  # rounding error of a float32 sum
