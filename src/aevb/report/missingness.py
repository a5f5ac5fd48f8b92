"""Which columns of a table have missing entries, and how many."""

from pathlib import Path
from typing import Any

import numpy as np

from aevb.report.canvas import COLOURS, FAINT, INK, RULE, new_figure, plot_axes, save, short_names, write_title

MAX_SHOWN = 30


def missingness(shares: dict[str, np.ndarray], names: list[str], path) -> Path:
    """Draw the share of missing entries of each column that has any, the largest first.

    Args:
        shares: Shares (D,) by the name of the rows, such as "training rows"; the first one is drawn as bars.
        names: Names of the columns, (D,).
        path: Path of the PNG.

    Returns:
        The path.
    """
    most = np.max(list(shares.values()), axis=0)
    order = np.argsort(-most, kind="stable")[: min(np.count_nonzero(most), MAX_SHOWN)]
    short = short_names([names[place] for place in order], 30)
    left, height = 0.35 + 0.075 * max(map(len, short)), 0.24 * len(order)
    figure = new_figure(7.2, 1.45 + height)
    num_with = np.count_nonzero(most)
    more = f" (the {len(order)} with the most are shown)" if num_with > len(order) else ""
    write_title(figure, "Missing entries", f"{num_with} of {len(names)} columns have missing entries{more}")
    axes = plot_axes(figure, (left, 0.5, 6.9 - left, height))
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    y = np.arange(len(order))
    drawn: list[Any] = []
    for number, values in enumerate(shares.values()):
        if number == 0:
            drawn.append(axes.barh(y, values[order], color=FAINT, alpha=0.4, height=0.7))
        else:
            drawn += axes.plot(values[order], y, "o", color=COLOURS[number], markersize=5, clip_on=False)
    axes.set_yticks(y, short)
    axes.set(ylim=(len(order) - 0.5, -0.5), xlim=(0, min(1.0, 1.15 * most.max())))
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g} %")
    if len(shares) > 1:
        place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 2}
        axes.legend(drawn, list(shares), **place, frameon=False, fontsize=8.5, labelcolor=INK)
    return save(figure, path)
