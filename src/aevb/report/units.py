"""Which latent variables respond to the data."""

from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator

from aevb.inference.diagnostics import THRESHOLD, ActiveUnits
from aevb.report.canvas import COLOURS, FAINT, INK, RULE, new_figure, plot_axes, save, write_title


def active_units(units: ActiveUnits, path) -> Path:
    """Draw the variance of the posterior means over the data, one bar per latent variable, largest first.

    Args:
        units: See :func:`aevb.inference.diagnostics.active_codes`.
        path: Path of the PNG.

    Returns:
        The path.
    """
    order = np.argsort(-units.variance)
    variances, threshold = units.variance[order], THRESHOLD
    figure = new_figure(7.2, 3.6)
    subtitle = f"variance of the codes over the data, relative to the prior; active above {threshold:g} (dashed)"
    write_title(figure, f"Active latent variables: {units.num_active} of {len(variances)}", subtitle)
    axes = plot_axes(figure, (0.78, 0.62, 6.1, 2.1))
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    colours = [COLOURS[0] if is_active else FAINT for is_active in units.is_active[order]]
    axes.bar(np.arange(1, len(variances) + 1), np.maximum(variances, 1e-6), color=colours, width=0.8)
    axes.axhline(threshold, color=INK, linewidth=0.9, linestyle=(0, (4, 4)))
    axes.set_yscale("log")
    axes.set_ylim(min(threshold / 10, max(variances.min(), 1e-6)), max(2.0, 2 * variances.max()))
    axes.set_xlim(0.4, len(variances) + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("latent variables, sorted by variance", color=INK, fontsize=9)
    return save(figure, path)
