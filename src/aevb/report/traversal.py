"""What each latent variable does: images decoded along its axis, the most informative first."""

from pathlib import Path
from typing import Any

import numpy as np

from aevb.fitted import latent_space, with_rows
from aevb.report.canvas import FAINT, INK, image_axes, new_figure, save, tile, write_title
from aevb.report.images import INK_ON_PAPER, limits_of, show

MAX_SHOWN = 12


def traversals(
    vae: Any, path, rows: np.ndarray, image_shape: tuple[int, ...], *, size: int = 11, cmap: str = INK_ON_PAPER
) -> Path:
    """Draw decoder means along each latent axis, through the average code, the most informative first.

    Args:
        vae: A fitted model, or its estimator.
        path: Path of the PNG.
        rows: (n, D), used to rank the axes.
        image_shape: (height, width) or (height, width, 3) of a row as an image.
        size: Images along an axis.
        cmap: Name of a Matplotlib colour map.

    Returns:
        The path.
    """
    model, rows = with_rows(vae, rows)
    dimensions, carried, _, means = latent_space.traverse(model, rows, size)  # (J,), (J,), _, (J, size, D)
    shown = dimensions[:MAX_SHOWN]
    means = means[: len(shown)].reshape(-1, *image_shape)
    cell, left, right, top, bottom = 0.6, 0.75, 0.95, 0.9, 0.25
    height = cell * image_shape[0] / image_shape[1]
    figure = new_figure(left + size * cell + right, top + len(shown) * height + bottom)
    subtitle = f"one latent variable per row, from −2.5 to 2.5; {len(shown)} of {len(dimensions)} shown"
    write_title(figure, "Latent traversals", subtitle)
    axes = image_axes(figure, (left, bottom, size * cell, len(shown) * height))
    show(axes, tile(means, size), limits_of(model, means), cmap)
    unit = "variance" if latent_space.divergences(model, rows[:1]) is None else "nats"
    for number, axis in enumerate(shown):
        y = 1 - (number + 0.5) / len(shown)
        style = {"va": "center", "transform": axes.transAxes, "fontsize": 9}
        axes.text(-0.1 / (size * cell), y, f"$z_{{{axis + 1}}}$", color=INK, ha="right", **style)
        axes.text(1 + 0.1 / (size * cell), y, f"{carried[number]:.2f} {unit}", color=FAINT, ha="left", **style)
    return save(figure, path)
