"""Which latent variables carry something."""

from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator

from aevb.report.canvas import COLOURS, FAINT, INK, RULE, new_figure, plot_axes, save, write_title


def active_units(variances, threshold: float, path) -> Path:
    """Draw the variance of the posterior means over the data, one bar a latent variable, largest first.

    Args:
        variances: (J,).
        threshold: Above which a variable counts as active.
        path: Where the PNG goes.

    Returns:
        The path.
    """
    variances = np.sort(np.asarray(variances))[::-1]
    figure = new_figure(7.2, 3.6)
    subtitle = f"variance of the posterior means over the data; above {threshold:g} (dashed) a variable is active"
    write_title(figure, f"Active latent variables: {np.sum(variances > threshold)} of {len(variances)}", subtitle)
    axes = plot_axes(figure, (0.78, 0.62, 6.1, 2.1))
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    colours = [COLOURS[0] if variance > threshold else FAINT for variance in variances]
    axes.bar(np.arange(1, len(variances) + 1), np.maximum(variances, 1e-6), color=colours, width=0.8)
    axes.axhline(threshold, color=INK, linewidth=0.9, linestyle=(0, (4, 4)))
    axes.set_yscale("log")
    axes.set_ylim(min(threshold / 10, max(variances.min(), 1e-6)), max(2.0, 2 * variances.max()))
    axes.set_xlim(0.4, len(variances) + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("latent variables, by variance", color=INK, fontsize=9)
    return save(figure, path)
