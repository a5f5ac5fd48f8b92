"""Time series: lines with bands, and forecasts that fan out from the last observation."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from aevb.report.canvas import COLOURS, FAINT, INK, new_figure, plot_axes, write_title

LEVELS = (0.5, 0.8, 0.95)  # of the bands
MAX_SHOWN = 100  # observed steps before the forecast


def plot_forecasts(
    observed: Sequence[np.ndarray], forecast: Any, columns: Sequence[str], labels: Sequence[str]
) -> Figure:
    """Draw the last observations of sequences and the bands of their forecasts: a row for each column.

    Args:
        observed: (T_i, D) for each sequence that is drawn.
        forecast: :class:`aevb.fitted.forecasts.Forecast` of at least these sequences.
        columns: Names of the first columns, those that are drawn.
        labels: What the sequences are called.
    """
    num, width, height = len(observed), 2.6, 1.5
    figure = new_figure(0.7 + (width + 0.3) * num, 1.1 + (height + 0.35) * len(columns))
    said = ", ".join(f"{level:.0%}" for level in LEVELS)
    write_title(figure, "Forecasts", f"median and central intervals ({said}); steps before and after the end")
    for place, column in enumerate(columns):
        bottom = 0.45 + (height + 0.35) * (len(columns) - 1 - place)
        for number, rows in enumerate(observed):
            axes = plot_axes(figure, (0.6 + (width + 0.3) * number, bottom, width, height))
            shown = rows[-MAX_SHOWN:, place]
            axes.plot(np.arange(1 - len(shown), 1), shown, color=INK, linewidth=1)
            steps = np.arange(1, forecast.draws.shape[2] + 1)
            for level in sorted(LEVELS, reverse=True):
                low, high = forecast.interval(level)[number, :, place].T
                axes.fill_between(steps, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
            axes.plot(steps, forecast.quantiles([0.5])[number, :, place, 0], color=COLOURS[0], linewidth=1.2)
            axes.axvline(0, color=FAINT, linewidth=0.6)
            axes.set_title(f"{column}, {labels[number]}" if num > 1 else column, loc="left", fontsize=8, color=INK)
    return figure
