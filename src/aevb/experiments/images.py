"""Figures 4 and 5: what the learned models imagine.

Paper: Figure 4, Figure 5, App. A.
"""

from pathlib import Path

import jax
import numpy as np

from aevb.experiments.curves import learned_models, read_data
from aevb.experiments.settings import DATA_TITLES, Curve
from aevb.report.canvas import INK, image_axes, new_figure, save, tile, write_title
from aevb.report.images import INK_ON_PAPER, show
from aevb.tasks import decoder_mean, manifold_grid, sample_mean
from aevb.training import Source, rowwise


def draw_manifolds(
    curves: list[Curve], results: list[dict], folder: Path, settings: dict, size: int = 20
) -> list[Path]:
    """Draw the decoder's means over the plane, at points that are equally likely under the prior.

    Paper: Figure 4, App. A.
    """
    panels = {DATA_TITLES[curve.data]: (curve, _means(curve, folder, manifold_grid(size))) for curve in curves}
    subtitle = f"means of p(x|z) at {size} × {size} points z that are equally likely under the prior"
    return [_draw_panels(panels, folder / "figure-4.png", settings["title"], subtitle, size)]


def draw_samples(curves: list[Curve], results: list[dict], folder: Path, settings: dict, size: int = 12) -> list[Path]:
    """Draw the decoder's means for z drawn from the prior.

    Paper: Figure 5, App. A.
    """
    numbers = np.arange(size**2)
    panels = {}
    for curve in curves:
        generative, _ = learned_models(curve, folder / "curves")
        images = rowwise(sample_mean, generative, Source(numbers[:, None]), numbers, jax.random.key(curve.seed))
        panels[f"{curve.latent_dim} latent variables"] = (curve, images)
    subtitle = f"{DATA_TITLES[curves[0].data]}: means of p(x|z), z drawn from the prior"
    return [_draw_panels(panels, folder / "figure-5.png", settings["title"], subtitle, size)]


def _means(curve, folder, z):
    generative, _ = learned_models(curve, folder / "curves")
    return rowwise(decoder_mean, generative, Source(z), np.arange(len(z)))


def _draw_panels(panels, path, title, subtitle, columns):
    width, gap, left, bottom, top = 4.4, 0.35, 0.3, 0.3, 1.1
    data = [read_data(curve) for curve, _ in panels.values()]
    shapes = [each.image_shape or (1, 1) for each in data]
    per_row = min(len(panels), 2)
    heights = [width * height / breadth for height, breadth in shapes]
    rows = -(-len(panels) // per_row)
    figure = new_figure(2 * left + per_row * (width + gap) - gap, top + rows * (max(heights) + bottom + gap) - gap)
    write_title(figure, title, subtitle)
    for number, ((name, (_, images)), shape) in enumerate(zip(panels.items(), shapes, strict=True)):
        row, column = divmod(number, per_row)
        height = heights[number]
        floor = (rows - 1 - row) * (max(heights) + bottom + gap) + bottom + max(heights) - height
        axes = image_axes(figure, (left + column * (width + gap), floor, width, height))
        cmap = "gray" if data[number].light_on_dark else INK_ON_PAPER
        show(axes, tile(images.reshape(-1, *shape), columns), (0.0, 1.0), cmap)
        axes.text(0, 1.01, name, color=INK, fontsize=10, transform=axes.transAxes, va="bottom")
    return save(figure, path)
