"""Figures 2 and 3: model quality against the number of training samples.

Paper: Figure 2, Figure 3, §5.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from aevb.experiments.settings import DATA_TITLES, Curve
from aevb.report.canvas import COLOURS, FAINT, INK, RULE, new_figure, plot_axes, save, write_title

LOOKS = {
    "aevb": ("AEVB", COLOURS[0], "o"),
    "wake-sleep": ("wake-sleep", COLOURS[1], "s"),
    "mcem": ("MCEM", COLOURS[3], "^"),
}
LINES = {"test": "-", "train": (0, (3, 2))}
_WIDTH, _HEIGHT, _GAP, _LEFT, _TOP, _ROW_GAP = 2.0, 1.9, 0.25, 0.85, 1.45, 0.75


def draw_lower_bounds(curves: list[Curve], results: list[dict], folder: Path, settings: dict) -> list[Path]:
    """Draw a panel for each data set and number of latent variables, one row per data set.

    Paper: Figure 2.
    """
    panels: dict[str, dict[str, list]] = {}
    for curve, result in zip(curves, results, strict=True):
        panels.setdefault(curve.data, {}).setdefault(f"{DATA_TITLES[curve.data]}, J = {curve.latent_dim}", []).append(
            result
        )
    subtitle = "nats per datapoint; one seed"
    return [_draw(list(panels.values()), folder / "figure-2.png", settings["title"], subtitle, "lower bound")]


def draw_marginal_likelihoods(curves: list[Curve], results: list[dict], folder: Path, settings: dict) -> list[Path]:
    """Draw a panel for each number of training images.

    Paper: Figure 3.
    """
    panels: dict[str, list] = {}
    for curve, result in zip(curves, results, strict=True):
        panels.setdefault(f"{curve.num_train or 0:,} training images", []).append(result)
    subtitle = f"{DATA_TITLES[curves[0].data]}, 3 latent variables, appendix D's estimate, nats per datapoint; one seed"
    path = folder / "figure-3.png"
    return [_draw([panels], path, settings["title"], subtitle, "log p(x)", width=3.6, height=2.9)]


def _draw(rows, path, title, subtitle, what, width=_WIDTH, height=_HEIGHT):
    columns = max(map(len, rows))
    size = _LEFT + columns * (width + _GAP) + 0.2, _TOP + len(rows) * (height + _ROW_GAP) + 0.25
    figure = new_figure(*size)
    write_title(figure, title, subtitle)
    _draw_legend(figure, [result for row in rows for results in row.values() for result in results])
    for number, row in enumerate(rows):
        limits = _limits([result for results in row.values() for result in results])
        bottom = size[1] - _TOP - height - number * (height + _ROW_GAP)
        for column, (name, results) in enumerate(row.items()):
            axes = plot_axes(figure, (_LEFT + column * (width + _GAP), bottom, width, height))
            _draw_panel(axes, name, results, limits)
            if column:
                axes.tick_params(labelleft=False)
            else:
                axes.set_ylabel(what, color=INK, fontsize=9)
            if number == len(rows) - 1 and column == 0:
                axes.set_xlabel("training samples seen (log scale)", color=INK, fontsize=9, loc="left")
    return save(figure, path)


def _draw_panel(axes, name, results, limits):
    axes.set_title(name, fontsize=10, color=INK, loc="left")
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    for result in results:
        _, colour, marker = LOOKS[result["settings"]["learner"]]
        seen = [point["samples"] for point in result["points"]]
        for part, line in LINES.items():
            mean = [point[part]["mean"] for point in result["points"]]
            dots = {"marker": marker, "markersize": 3.0} if part == "test" else {}
            axes.plot(seen, mean, color=colour, linewidth=1.5, linestyle=line, **dots)
    axes.set_xscale("log")
    axes.set_ylim(*limits)
    axes.xaxis.set_major_locator(LogLocator(base=10, numticks=8))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(_in_short))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}".replace("-", "−")))


def _limits(results) -> tuple[float, float]:
    """Return a range that contains all curves except the steep first part of the baselines."""
    means = np.array([point[part]["mean"] for result in results for point in result["points"] for part in LINES])
    first = [result["points"][0]["test"]["mean"] for result in results if result["settings"]["learner"] == "aevb"]
    low, high = min(first), means.max()
    margin = 0.05 * (high - low)
    return low - 3 * margin, high + margin


def _draw_legend(figure, results):
    """Draw the legend of colours and lines below the title."""
    width, height = figure.get_size_inches()
    x, y = 0.32 / width, 1 - 0.88 / height
    learners = dict.fromkeys(result["settings"]["learner"] for result in results)
    marks: list[tuple[str, Any, Any, str | None]] = [
        (LOOKS[learner][0], LOOKS[learner][1], "-", LOOKS[learner][2]) for learner in learners
    ]
    marks += [(f"{part} images", FAINT, line, None) for part, line in LINES.items()]
    for name, colour, line, marker in marks:
        look = {"color": colour, "linewidth": 1.8, "linestyle": line, "marker": marker, "markersize": 4}
        figure.add_artist(Line2D([x, x + 0.28 / width], [y, y], **look))
        figure.text(x + 0.34 / width, y, name, color=colour, fontsize=9, va="center")
        x += (0.6 + 0.08 * len(name)) / width


def _in_short(value, _):
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k"
