"""Paths through the latent space: between two datapoints, along each dimension, over the plane.

Paper: Figure 4, App. A.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from aevb.arguments import check_parameter


def manifold_grid(size: int = 20) -> np.ndarray:
    r"""Return the latent coordinates of the manifold's tiles, row by row from the top left.

    .. math:: z = (\Phi^{-1}(u), \Phi^{-1}(v)), \quad u, v \in \{(i + 1/2) / n : i = 0, \dots, n - 1\}

    Linearly spaced coordinates on the unit square are mapped through the inverse CDF of the Gaussian. They are the
    centres of n x n cells: each tile stands for the same probability under the prior, and none is infinite.

    Args:
        size: n.

    Returns:
        (size * size, 2); the first coordinate grows to the right, the second upwards.

    Example:
        >>> manifold_grid(2).round(3)
        array([[-0.674,  0.674],
               [ 0.674,  0.674],
               [-0.674, -0.674],
               [ 0.674, -0.674]], dtype=float32)

    Paper: Figure 4, App. A.
    """
    check_parameter("size", size, kind=int, low=1)
    values = ndtri((np.arange(size) + 0.5) / size).astype(np.float32)
    right, up = np.meshgrid(values, values[::-1])
    return np.stack([right.ravel(), up.ravel()], axis=-1)


def latent_path(start: np.ndarray, end: np.ndarray, num: int, path: str = "linear") -> np.ndarray:
    r"""Return points from one z (J,) to another, (num, J), both ends included.

    On the sphere, the direction turns at a constant rate and the length changes linearly. Under a Gaussian prior in
    many dimensions nearly all z have nearly the same length, and the middle of a straight line is too short.

    .. math:: z(t) = r(t) \left( \frac{\sin((1-t) \omega)}{\sin \omega} u_0 + \frac{\sin(t \omega)}{\sin \omega} u_1
        \right), \quad r(t) = (1 - t)\, r_0 + t\, r_1

    Shoemake, "Animating rotation with quaternion curves" (1985); for latent variables: White, "Sampling generative
    networks" (2016).

    Args:
        start: (J,).
        end: (J,).
        num: Number of points, 2 or more.
        path: A key of ``PATHS``: ``"linear"`` or ``"sphere"``.

    Example:
        >>> latent_path(np.array([2.0, 0.0]), np.array([0.0, 2.0]), 3, "sphere").round(3)
        array([[2.   , 0.   ],
               [1.414, 1.414],
               [0.   , 2.   ]])
    """
    check_path_options(num, path)
    return PATHS[path](np.asarray(start), np.asarray(end), np.linspace(0, 1, num)[:, None])


def check_path_options(num: int, path: str) -> None:
    """Refuse an unknown path, or one with too few points."""
    check_parameter("path", path, choices=PATHS)
    check_parameter("num", num, kind=int, low=2)


def _line(start, end, t):
    return (1 - t) * start + t * end


def _arc(start, end, t):
    lengths = np.linalg.norm(start), np.linalg.norm(end)
    if min(lengths) == 0:
        return _line(start, end, t)  # the origin has no direction
    cosine = np.clip(start @ end / (lengths[0] * lengths[1]), -1, 1)
    angle = np.arccos(cosine)
    if np.sin(angle) < 1e-4:  # there is no arc, or no single shortest one
        return _line(start, end, t)
    direction = (np.sin((1 - t) * angle) * start / lengths[0] + np.sin(t * angle) * end / lengths[1]) / np.sin(angle)
    return _line(lengths[0], lengths[1], t) * direction


PATHS = {"linear": _line, "sphere": _arc}


class Traversal(NamedTuple):
    """The effect of each latent dimension, most informative first."""

    dimensions: np.ndarray  # (J,): their indices, in this order
    carried: np.ndarray  # (J,): the average KL(q(z_j|x) || p(z_j)) in nats, or the variance of the posterior means
    values: np.ndarray  # (num,): values of the varied dimension
    means: np.ndarray  # (J, num, D): the decoder's means


def traversal_grid(center: np.ndarray, dimensions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the center (J,) with one dimension after the other set to each value, (len(dimensions) * num, J).

    Example:
        >>> traversal_grid(np.zeros(2), np.array([1, 0]), np.array([-1.0, 1.0])).tolist()
        [[0.0, -1.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 0.0]]
    """
    z = np.tile(center, (len(dimensions), len(values), 1))
    z[np.arange(len(dimensions)), :, dimensions] = values
    return z.reshape(-1, len(center))
