"""Pictures of sequences: lines with bands, rolls of probabilities, forecasts that fan out, and latent paths."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from aevb.explorer.views import LEVELS, QUANTILES, Panel, View, Views
from aevb.report.canvas import COLOURS, FAINT, INK, new_figure, plot_axes, shortened, write_title

MAX_SHOWN = 100  # observed steps before a forecast
ROW_HEIGHT, HEIGHTS = 0.09, (0.32, 2.6)  # inches, of the rows of a roll, and of all of them together
WIDTH, HEIGHT, GAP = 3.6, 1.5, 0.55
BANDS = ", ".join(f"{level:.0%}" for level in LEVELS)


def plot_reconstructions(views: Views, most: int = 2) -> Figure:
    """Draw what was observed in sequences, and what the model expects there once it has seen all of it."""
    said = f"black: observed; blue: median and {BANDS}, or probability, under p(xₜ|zₜ) with z from q(z|x)"
    return _plot(views, most, "Observed and reconstructed", said, lambda view: slice(0, view.length))


def plot_forecasts(views: Views, most: int = 2) -> Figure:
    """Draw the last observations of sequences, and the bands of the steps after them."""
    said = f"black: observed; blue: median and {BANDS}, or probability, of the next {views.steps} steps"
    return _plot(views, most, "Forecasts", said, lambda view: slice(view.length, None), MAX_SHOWN)


def plot_past_forecasts(views: Views, most: int = 2) -> Figure:
    """Draw forecasts from a step before the end of sequences, beside what was observed after it."""
    said = f"black: known; red: observed later; blue: median and {BANDS}, or probability, given what is known"
    title = "Forecasts from an earlier step"
    return _plot(views, most, title, said, lambda view: slice(view.length, None), MAX_SHOWN)


def _plot(views: Views, most, title, subtitle, expected, before=10**9) -> Figure:
    """Draw a column of panels for each sequence; `expected` says of which steps the model's part is drawn."""
    shown = views.sequences[:most]
    heights = [_height(panel) for panel in shown[0].panels]
    wide = WIDTH if len(shown) > 1 else 2 * WIDTH
    left, bottom = 0.95, 0.5
    figure = new_figure(left + (wide + 0.75) * len(shown), bottom + 0.75 + sum(heights) + GAP * len(heights))
    write_title(figure, title, subtitle)
    for number, view in enumerate(shown):
        first = max(0, view.length - before)
        below = bottom + sum(heights) + GAP * len(heights)
        for place, panel in enumerate(view.panels):
            below -= heights[place] + GAP
            axes = plot_axes(figure, (left + (wide + 0.75) * number, below + 0.1, wide, heights[place]))
            axes.tick_params(labelsize=8)
            (_draw_roll if panel.rows else _draw_line)(axes, view, panel, expected(view), first)
            edges = _edges(view.positions)
            axes.set_xlim(edges[first], edges[-1] if expected(view).stop is None else edges[view.length])
            axes.set_title(f"{panel.name}, {view.name}", loc="left", fontsize=8.5, color=INK)
            is_last = place == len(view.panels) - 1
            _time_axis(axes, view, views.unit, first if expected(view).stop else None, is_last)
    return figure


def _height(panel: Panel) -> float:
    return float(np.clip(ROW_HEIGHT * len(panel.rows), *HEIGHTS)) if panel.rows else HEIGHT


def _draw_line(axes: Axes, view: View, panel: Panel, steps: slice, first: int):
    at, bands = view.positions[steps], panel.expected[steps]
    if steps.start:  # a forecast fans out from the last observation
        last = panel.observed[view.length - 1, 0]
        last = panel.expected[view.length - 1, len(QUANTILES) // 2] if np.isnan(last) else last
        at = np.concatenate([[0.0], at])
        bands = np.concatenate([np.full((1, len(QUANTILES)), last), bands])
    for place in range(len(LEVELS)):
        low, high = bands[:, place], bands[:, len(QUANTILES) - 1 - place]
        axes.fill_between(at, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
    axes.plot(at, bands[:, len(QUANTILES) // 2], color=COLOURS[0], linewidth=1.2)
    observed, later = panel.observed[first : view.length, 0], panel.observed[view.length :, 0]
    style = {"linewidth": 0.8, "marker": ".", "markersize": 2 if len(observed) > 60 else 4}
    axes.plot(view.positions[first : view.length], observed, color=INK, **style)
    axes.plot(view.later, later, color=COLOURS[1], **style)
    axes.yaxis.set_major_locator(MaxNLocator(4))


def _draw_roll(axes: Axes, view: View, panel: Panel, steps: slice, first: int):
    """Draw probabilities as shades of blue, what was observed as black marks, and missing steps as grey."""
    shares, edges = panel.expected[steps], _edges(view.positions)
    rows = np.arange(len(panel.rows) + 1) - 0.5
    start = steps.start or 0
    at = edges[start : start + len(shares) + 1]
    axes.pcolormesh(at, rows, shares.T, cmap="Blues", vmin=0, vmax=1, rasterized=True)
    observed, at = panel.observed[first : view.length], view.positions[first : view.length]
    when, what = np.nonzero(observed == 1)
    box, points = axes.get_window_extent(), 72 / axes.figure.dpi  # per pixel
    width, height = box.width * points, box.height * points
    cell = min(width / (len(at) + len(shares) * bool(start)), height / len(panel.rows))
    size = float(np.clip(0.5 * cell, 1.2, 5))  # the expected probability stays visible around a mark
    axes.plot(at[when], what, "s", color=INK, markersize=size, markeredgewidth=0, linestyle="none")
    then, rows = np.nonzero(panel.observed[view.length :] == 1)
    axes.plot(view.later[then], rows, "s", color=COLOURS[1], markersize=size, markeredgewidth=0, linestyle="none")
    when, what = np.nonzero(np.isnan(observed))
    axes.plot(at[when], what, "x", color=FAINT, markersize=min(size, 3), markeredgewidth=0.5, linestyle="none")
    shown = np.unique(np.linspace(0, len(panel.rows) - 1, min(len(panel.rows), 8)).astype(int))
    axes.set_yticks(shown, [_short(panel.rows[row]) for row in shown], fontsize=7)
    axes.set_ylim(-0.5, len(panel.rows) - 0.5)


def _edges(positions):
    middles = (positions[1:] + positions[:-1]) / 2
    if not len(middles):
        return np.array([positions[0] - 0.5, positions[0] + 0.5])
    return np.concatenate([[2 * positions[0] - middles[0]], middles, [2 * positions[-1] - middles[-1]]])


def _short(name: str) -> str:
    return shortened(name, 12)


def _time_axis(axes: Axes, view: View, unit: str, first: int | None, is_last: bool):
    """Write times below the lowest panel: as in the data where they are known, else steps from the end."""
    if first is None:
        axes.axvline(0, color=FAINT, linewidth=0.6)
    end = "0" if len(view.later) else "end"
    if not is_last:
        axes.tick_params(labelbottom=False)
        return
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    if first is not None and view.times is not None:
        times, at = view.times, view.positions[: view.length]
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: times[int(np.argmin(np.abs(at - x)))]))
    elif first is not None:
        start = -view.positions[0]  # counted from the start, which is 0
        whole = MaxNLocator(4, integer=True).tick_values(0, start)
        shown = [float(tick) for tick in whole if 0 <= tick <= start]
        axes.set_xticks([tick - start for tick in shown], [f"{tick:g}" for tick in shown])
    else:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:+g}".replace("-", "−") if x else end))
    after, known = (
        f"{unit}s after the {'last known step' if len(view.later) else 'end'}",
        unit if unit == "step" else f"time, in {unit}s",
    )
    axes.set_xlabel(after if first is None else "time" if view.times is not None else known, fontsize=8, color=INK)


def plot_paths(views: Views, most: int = 6) -> Figure:
    """Draw the smoothed states of sequences as paths in the plane, from a circle to a dot."""
    figure = new_figure(7.0, 7.2)
    shown = views.sequences[:most]
    write_title(figure, "Latent paths", "smoothed states, from the first step (circle) to the last observed one (dot)")
    axes = plot_axes(figure, (0.8, 0.65, 5.9, 5.6))
    for number, view in enumerate(shown):
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(*view.path.T, color=colour, linewidth=1, alpha=0.8, label=view.name)
        axes.plot(*view.path[0], "o", color=colour, markersize=6, markerfacecolor="white")
        axes.plot(*view.path[-1], "o", color=colour, markersize=6)
    axes.set_xlabel(views.axes[0], color=INK, fontsize=9)
    axes.set_ylabel(views.axes[1], color=INK, fontsize=9)
    if len(shown) > 1:
        axes.legend(frameon=False, fontsize=8, loc="best")
    return figure
