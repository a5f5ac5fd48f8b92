"""Is the model memorizing? Its samples next to the nearest training images."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from aevb.fitted import FittedModel, coding
from aevb.report.images import INK_ON_PAPER, as_values, limits_of, pairs

_BLOCK = 2000  # training rows at a time


class Neighbours(NamedTuple):
    """The nearest training rows of some rows, and their distances."""

    places: np.ndarray  # (n,), indices of training rows
    distances: np.ndarray  # (n,), Euclidean


def nearest_rows(rows: np.ndarray, train: np.ndarray, scale: float = 1.0) -> Neighbours:
    """Return the nearest training row of each row, by Euclidean distance.

    Args:
        rows: (n, D).
        train: (N, D).
        scale: Factor for the training rows.

    Example:
        >>> nearest_rows(np.array([[0.0], [3.0]]), np.array([[1.0], [5.0]])).distances
        array([1., 2.])
    """
    rows = np.asarray(rows, np.float64)
    best, places = np.full(len(rows), np.inf), np.zeros(len(rows), int)
    for start in range(0, len(train), _BLOCK):
        block = train[start : start + _BLOCK].astype(np.float64) * scale
        squares = (rows**2).sum(1)[:, None] - 2 * rows @ block.T + (block**2).sum(1)
        place = squares.argmin(axis=1)
        found = squares[np.arange(len(rows)), place]
        places = np.where(found < best, start + place, places)
        best = np.minimum(found, best)
    # The expanded square loses digits near 0; the distance itself does not.
    return Neighbours(places, np.linalg.norm(rows - train[places] * scale, axis=1))


def nearest_images(
    model: FittedModel,
    path,
    train: np.ndarray,
    image_shape: tuple[int, ...],
    *,
    size: int = 10,
    seed: int = 0,
    cmap: str = INK_ON_PAPER,
) -> Path:
    """Draw new images above their nearest training images.

    Args:
        model: A fitted model, or its estimator.
        path: Path of the PNG.
        train: (N, D), the training rows.
        image_shape: (height, width) or (height, width, 3) of a row as an image.
        size: Number of new images.
        seed: Random seed of the draws.
        cmap: Name of a Matplotlib colour map.

    Returns:
        The path.
    """
    means = coding.sample(model, 2 * size, mean=True, random_state=seed)
    scale = model.matrix.scale_of(train)
    found = as_values(model, train[nearest_rows(means, train, scale).places])
    subtitle = "below each new image (a mean of p(x|z)): the nearest training image"
    look = {"image_shape": image_shape, "limits": limits_of(model, means), "columns": size, "cmap": cmap}
    return pairs(path, {"new": means, "nearest": found}, "Is it memorizing?", subtitle, **look)
