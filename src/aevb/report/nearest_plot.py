"""How far synthetic rows are from the training rows, compared with held-out rows."""

from pathlib import Path

import numpy as np

from aevb.report.canvas import COLOURS, FAINT, INK, new_figure, plot_axes, save, write_title


def nearest_plot(synthetic: np.ndarray, held_out: np.ndarray, path) -> Path:
    """Draw histograms of the distances to the nearest training row.

    Args:
        synthetic: (n,), of synthetic rows.
        held_out: (m,), of held-out rows.
        path: Path of the PNG.

    Returns:
        The path.
    """
    figure = new_figure(7.2, 3.7)
    subtitle = (
        f"distance to the nearest training row; grey: {len(held_out):,} held-out rows, red: {len(synthetic):,} "
        "synthetic rows; dashed: medians"
    )
    write_title(figure, "Does it repeat its training rows?", subtitle)
    axes = plot_axes(figure, (0.35, 0.62, 6.5, 2.2))
    high = float(np.quantile(np.concatenate([synthetic, held_out]), 0.995))
    edges = np.linspace(0, high if high > 0 else 1.0, 31)
    for distances, colour, filled in ((held_out, FAINT, True), (synthetic, COLOURS[1], False)):
        counts, _ = np.histogram(np.clip(distances, 0, edges[-1]), edges)
        alpha = 0.4 if filled else 1
        axes.stairs(counts / len(distances), edges, fill=filled, color=colour, alpha=alpha, linewidth=1.4)
        axes.axvline(np.median(distances), color=colour, linewidth=1.2, linestyle=(0, (4, 4)))
    axes.set_yticks([])
    axes.set_xlim(0, edges[-1])
    axes.set_xlabel("Gower's distance: 0 for a copy, 1 if all columns differ", color=INK, fontsize=9)
    return save(figure, path)
