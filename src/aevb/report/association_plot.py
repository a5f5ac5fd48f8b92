"""The associations of columns, of real rows and of synthetic ones, side by side."""

from pathlib import Path

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from aevb.report.association import mean_absolute_difference
from aevb.report.canvas import COLOURS, FAINT, INK, image_axes, new_figure, save, short_names, write_title

MAX_SHOWN, MAX_NUMBERS = 30, 10  # columns, and columns up to which the numbers are written
_COLOURS = LinearSegmentedColormap.from_list("association", [COLOURS[1], "white", COLOURS[0]])


def association_plot(real: np.ndarray, synthetic: np.ndarray, names: list[str], path) -> Path:
    """Draw two matrices (D, D) of associations next to each other.

    Args:
        real: See :func:`aevb.report.association.association`.
        synthetic: The same of synthetic rows.
        names: The names of the columns.
        path: Path of the PNG.

    Returns:
        The path.
    """
    num_shown = min(len(names), MAX_SHOWN)
    short = short_names(names[:num_shown], 20)
    side = min(max(0.36 * num_shown, 2.0), 3.9)
    room = 0.25 + 0.075 * max(map(len, short))  # for the names of rows and of columns
    difference = mean_absolute_difference(real, synthetic)
    more = f"; the first {num_shown} of {len(names)} columns" if num_shown < len(names) else ""
    colours = "; white: none, blue: the darker, the stronger"
    if np.nanmin([real, synthetic]) < 0:  # only correlations of numbers have a sign
        colours += ", red: negative correlation of numbers"
    subtitle = f"mean absolute difference {difference:.3f}{colours}{more}"
    figure = new_figure(max(room + 2 * side + 0.75, 0.5 + 0.067 * len(subtitle)), 1.25 + side + room)
    write_title(figure, "Associations between columns", subtitle)
    for number, (title, values) in enumerate({"real rows": real, "synthetic rows": synthetic}.items()):
        axes = image_axes(figure, (room + number * (side + 0.35), room, side, side))
        _draw(axes, values[:num_shown, :num_shown], short, has_names=number == 0)
        axes.set_title(title, fontsize=10, color=INK, pad=5)
    return save(figure, path)


def _draw(axes, values, names, has_names):
    axes.imshow(values, cmap=_COLOURS, vmin=-1, vmax=1, interpolation="nearest")
    places, size = np.arange(len(names)), 8 if len(names) <= 15 else 6.5
    axes.set_xticks(places, names, rotation=90, fontsize=size)
    axes.set_yticks(places, names if has_names else [""] * len(names), fontsize=size)
    axes.tick_params(length=0, labelcolor=INK)
    if len(names) > MAX_NUMBERS:
        return
    for row, column in zip(*np.nonzero(~np.eye(len(names), dtype=bool)), strict=True):
        value = values[row, column]
        text = "" if np.isnan(value) else f"{round(value, 2) + 0.0:.2f}".replace("0.", ".").replace("-", "−")
        axes.text(column, row, text, ha="center", va="center", fontsize=6.5, color=INK if abs(value) < 0.6 else "white")
    axes.set_facecolor(FAINT)
