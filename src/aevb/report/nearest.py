"""Is the model memorizing? Its samples beside the training images that are nearest to them."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from aevb.report.images import INK_ON_PAPER, as_values, limits_of, pairs
from aevb.vae import VAE

_BLOCK = 2000  # training rows at a time


class Neighbours(NamedTuple):
    """Rows, the training rows nearest to them, and how far these are."""

    places: np.ndarray  # (n,), numbers of training rows
    distances: np.ndarray  # (n,), Euclidean


def nearest_rows(rows: np.ndarray, train: np.ndarray, scale: float = 1.0) -> Neighbours:
    """Return the nearest training row of each row, by Euclidean distance.

    Args:
        rows: (n, D).
        train: (N, D).
        scale: What the training rows are multiplied by.

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
    vae: VAE,
    path,
    train: np.ndarray,
    image_shape: tuple[int, int],
    *,
    size: int = 10,
    seed: int = 0,
    cmap: str = INK_ON_PAPER,
) -> Path:
    """Draw new images above the training images that are nearest to them.

    Args:
        vae: A fitted model.
        path: Where the PNG goes.
        train: (N, D), the rows that were learned from.
        image_shape: (height, width) of a row as an image.
        size: Images in a row, of which there are two.
        seed: Of the draws.
        cmap: Matplotlib's name of a colour map.

    Returns:
        The path.
    """
    means = vae.sample(2 * size, mean=True, random_state=seed)
    scale = float(vae.scale_) if train.dtype == np.uint8 else 1.0
    found = as_values(vae, train[nearest_rows(means, train, scale).places])
    subtitle = "below each new image (a mean of p(x|z)) the training image nearest to it"
    look = {"image_shape": image_shape, "limits": limits_of(vae, means), "columns": size, "cmap": cmap}
    return pairs(path, {"new": means, "nearest": found}, "Is it memorizing?", subtitle, **look)
