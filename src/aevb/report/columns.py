"""Pictures of tables, column by column: samples compared with data, and reconstructions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from aevb.fitted import coding, with_rows
from aevb.report.canvas import COLOURS, FAINT, INK, new_figure, plot_axes, save, shortened, write_title
from aevb.report.images import as_values

MAX_SHOWN, PER_ROW = 20, 5


def column_histograms(vae: Any, path, rows: np.ndarray, names=None, *, seed: int = 0) -> Path:
    """Draw histograms of the columns of the data, and of equally many draws from the model.

    Args:
        vae: A fitted model, or its estimator.
        path: Path of the PNG.
        rows: (n, D), data.
        names: Names of the columns.
        seed: Random seed of the draws.

    Returns:
        The path.
    """
    model, rows = with_rows(vae, rows)
    data, drawn = as_values(model, rows), coding.sample(model, max(len(rows), 500), random_state=seed)

    def draw(axes, column):
        low, high = np.quantile(data[:, column], [0.005, 0.995])
        edges = np.linspace(low, high if high > low else low + 1, 21)
        for values, colour, filled in ((data, FAINT, True), (drawn, COLOURS[1], False)):
            counts, _ = np.histogram(values[:, column], edges)
            axes.stairs(
                counts / len(values), edges, fill=filled, color=colour, alpha=0.4 if filled else 1, linewidth=1.4
            )
        axes.set_yticks([])

    subtitle = f"grey: {len(data):,} rows of data; red: samples from the model"
    return draw_panels(path, "Columns: data and samples", subtitle, data.shape[1], names, draw)


def column_reconstructions(vae: Any, path, rows: np.ndarray, names=None) -> Path:
    """Draw each column's values against their reconstructions.

    Args:
        vae: A fitted model, or its estimator.
        path: Path of the PNG.
        rows: (n, D), data.
        names: Names of the columns.

    Returns:
        The path.
    """
    model, rows = with_rows(vae, rows)
    rows = rows[:1000]
    data, made = as_values(model, rows), coding.reconstruct(model, rows)

    def draw(axes, column):
        low, high = data[:, column].min(), data[:, column].max()
        axes.plot([low, high], [low, high], color=FAINT, linewidth=0.8)
        axes.scatter(data[:, column], made[:, column], s=5, color=COLOURS[0], linewidths=0, alpha=0.6, rasterized=True)

    subtitle = "horizontal: the value; vertical: its reconstruction; on the line they agree"
    return draw_panels(path, "Reconstructions, column by column", subtitle, data.shape[1], names, draw)


def draw_panels(path, title: str, subtitle: str, num_columns: int, names, draw: Callable[[Axes, int], None]) -> Path:
    """Draw a small panel for each column, up to twenty, five in a row.

    Args:
        path: Path of the PNG.
        title: Of the picture.
        subtitle: What the panels show.
        num_columns: Number of columns.
        names: Their names, or None.
        draw: Draws the panel of a column, given the axes and its place.

    Returns:
        The path.
    """
    shown = min(num_columns, MAX_SHOWN)
    num_rows = -(-shown // PER_ROW)
    width, height, space, top = 1.62, 1.15, 0.62, 0.8
    figure = new_figure(0.45 + PER_ROW * (width + 0.32), top + num_rows * (height + space))
    more = f" (the first {shown} of {num_columns} columns)" if shown < num_columns else ""
    write_title(figure, title, subtitle + more)
    for column in range(shown):
        row, place = divmod(column, PER_ROW)
        bottom = space * 0.55 + (num_rows - 1 - row) * (height + space)
        axes = plot_axes(figure, (0.45 + place * (width + 0.32), bottom, width, height))
        axes.tick_params(labelsize=7)
        axes.locator_params(nbins=3)
        draw(axes, column)
        name = str(names[column]) if names is not None else f"column {column}"
        axes.set_title(shortened(name, 25), fontsize=8.5, color=INK, pad=3)
    return save(figure, path)
