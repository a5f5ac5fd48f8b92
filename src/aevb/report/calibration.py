"""Pictures of predictions: whether probabilities and intervals can be believed, and what is mistaken for what."""

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from aevb.report.canvas import COLOURS, FAINT, INK, RULE, image_axes, new_figure, plot_axes, save, write_title
from aevb.report.dates import write_dates
from aevb.report.label_measures import NUM_BINS, Reliability, share_interval

SIDE, GAP = 3.6, 0.9  # of panels, in inches
MIN_WIDTH = 7.5  # of pictures with long titles
MAX_LETTERS = 14  # of the name of a level


def plot_reliability(path, found: Reliability, subtitle: str) -> Path:
    """Draw how often predicted labels are right against their probability, and how many rows there are of each.

    Args:
        path: Path of the PNG.
        found: See :func:`aevb.report.label_measures.reliability`.
        subtitle: Which rows these are.

    Returns:
        The path.
    """
    figure = new_figure(2 * SIDE + GAP + 1.1, SIDE + 1.75)
    write_title(figure, f"Reliability: expected calibration error {found.error:.3f}", subtitle)
    axes, counts = (plot_axes(figure, (0.75 + place * (SIDE + GAP), 0.65, SIDE, SIDE)) for place in range(2))
    edges, has_rows = np.linspace(0, 1, NUM_BINS + 1), found.counts > 0
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8, linestyle=(0, (4, 4)))
    for low, high, confidence, accuracy in zip(edges, edges[1:], found.confidence, found.accuracy, strict=False):
        axes.fill_between([low, high], 0, np.nan_to_num(accuracy), color=COLOURS[0], alpha=0.3, linewidth=0)
        axes.plot([confidence] * 2, [confidence, accuracy], color=COLOURS[1], linewidth=1.2)
    x, y, n = (values[has_rows] for values in (found.confidence, found.accuracy, found.counts))
    ends = np.array([share_interval(share * num, num) for share, num in zip(y, n, strict=True)]).reshape(-1, 2)
    style = {"fmt": "o", "color": INK, "markersize": 3.5, "linewidth": 0.9}
    axes.errorbar(x, y, np.abs(ends.T - y), **style, clip_on=False, zorder=3)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xlabel("probability of the predicted label", color=INK, fontsize=9)
    axes.set_ylabel("share of rows for which it is right", color=INK, fontsize=9)
    counts.stairs(found.counts, edges, fill=True, color=FAINT, alpha=0.5)
    counts.set(xlim=(0, 1))
    counts.set_xlabel("probability of the predicted label", color=INK, fontsize=9)
    counts.set_ylabel("rows", color=INK, fontsize=9)
    return save(figure, path)


def plot_confusion(path, counts: np.ndarray, names: list[str], subtitle: str) -> Path:
    """Draw how many rows of each label are predicted to have which.

    Args:
        path: Path of the PNG.
        counts: (K, K), rows: labels; columns: predictions.
        names: (K,), of the labels.
        subtitle: Which rows these are.

    Returns:
        The path.
    """
    K, left = len(names), 0.5 + 0.075 * max(map(len, names))
    side = max(2.2, 0.48 * K)
    figure = new_figure(left + side + 0.8, side + 1.9)
    write_title(figure, "Labels and predictions", subtitle)
    axes = image_axes(figure, (left + 0.3, 0.75, side, side))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for row, column in np.argwhere(counts > 0):
        colour = "white" if shares[row, column] > 0.5 else INK
        size = 8 if counts.max() < 1000 else 6
        axes.text(column, row, f"{counts[row, column]}", color=colour, fontsize=size, ha="center", va="center")
    axes.set_xticks(range(K), names, rotation=0 if max(map(len, names)) < 4 else 40, fontsize=8, color=INK)
    axes.set_yticks(range(K), names, fontsize=8, color=INK)
    axes.tick_params(length=0)
    axes.set_xlabel("predicted", color=INK, fontsize=9)
    axes.set_ylabel("label", color=INK, fontsize=9)
    return save(figure, path)


def plot_transforms(path, transforms: dict[str, np.ndarray], subtitle: str) -> Path:
    """Draw whether quantiles are right: a histogram of the observed targets' probability transforms, and their shares.

    Args:
        path: Path of the PNG.
        transforms: (n,) of each target, by name; see :func:`aevb.report.label_measures.probability_transforms`.
        subtitle: Which rows these are.

    Returns:
        The path.
    """
    figure = new_figure(2 * SIDE + GAP + 1.1, len(transforms) * (SIDE + 1.0) + 0.85)
    write_title(figure, "Calibration of quantiles", subtitle)
    levels = np.linspace(0, 1, 101)
    for number, (name, u) in enumerate(transforms.items()):
        bottom = 0.65 + (len(transforms) - 1 - number) * (SIDE + 1.0)
        axes, shares = (plot_axes(figure, (0.75 + place * (SIDE + GAP), bottom, SIDE, SIDE)) for place in range(2))
        num_bins = 20 if len(u) >= 400 else 10
        counts, edges = np.histogram(u, np.linspace(0, 1, num_bins + 1))
        expected = len(u) / num_bins
        spread = 2 * np.sqrt(expected * (1 - 1 / num_bins))
        axes.axhspan(expected - spread, expected + spread, color=RULE, linewidth=0)
        axes.stairs(counts, edges, fill=True, color=COLOURS[0], alpha=0.5)
        axes.set(xlim=(0, 1), ylim=(0, None))
        axes.set_xlabel(f"probability of a smaller {name}", color=INK, fontsize=9)
        axes.set_ylabel("rows", color=INK, fontsize=9)
        below = np.searchsorted(np.sort(u), levels, side="right") / len(u)
        band = 2 * np.sqrt(levels * (1 - levels) / len(u))
        shares.fill_between(levels, levels - band, levels + band, color=RULE, linewidth=0)
        shares.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8, linestyle=(0, (4, 4)))
        shares.plot(levels, below, color=COLOURS[0], linewidth=1.6)
        shares.set(xlim=(0, 1), ylim=(0, 1))
        shares.set_xlabel("level of the quantile", color=INK, fontsize=9)
        shares.set_ylabel(f"share of rows with {name} below it", color=INK, fontsize=9)
    return save(figure, path)


def plot_predictions(path, targets: dict[str, tuple[np.ndarray, ...]], subtitle: str) -> Path:
    """Draw observed targets against predicted means, with intervals.

    Args:
        path: Path of the PNG.
        targets: For each target, by name, its observed values, predicted means, and low and high ends, (n,) each.
        subtitle: Which rows and intervals these are.

    Returns:
        The path.
    """
    figure = new_figure(len(targets) * (SIDE + 1.6) + 0.9, SIDE + 2.5)
    write_title(figure, "Predicted and observed", subtitle)
    for number, (name, (observed, mean, low, high)) in enumerate(targets.items()):
        axes = plot_axes(figure, (0.85 + number * (SIDE + 1.6), 0.65, SIDE + 0.7, SIDE + 0.7))
        is_inside = (observed >= low) & (observed <= high)
        for rows, colour in ((is_inside, COLOURS[0]), (~is_inside, COLOURS[1])):
            axes.vlines(mean[rows], low[rows], high[rows], color=colour, linewidth=0.5, alpha=0.25)
            axes.scatter(mean[rows], observed[rows], s=7, color=colour, linewidths=0)
        ends = [min(observed.min(), mean.min()), max(observed.max(), mean.max())]
        axes.plot(ends, ends, color=FAINT, linewidth=0.8, linestyle=(0, (4, 4)))
        axes.set_xlabel(f"predicted {name}: mean", color=INK, fontsize=9)
        axes.set_ylabel(f"observed {name}", color=INK, fontsize=9)
    return save(figure, path)


class Panel(NamedTuple):
    """A column under several conditions."""

    conditions: list[tuple[str, np.ndarray, np.ndarray]]  # name, data (n,) and samples (m,); data may be empty
    levels: list[str]  # of a column of labels, whose values are their places; empty for numbers
    is_date: bool = False  # whether values are dates, in days


def plot_panels(path, panels: dict[str, Panel], subtitle: str) -> Path:
    """Draw columns of data and of samples, for each of several conditions.

    Of numbers: medians, quartiles and central 90%; of labels: their shares.

    Args:
        path: Path of the PNG.
        panels: By the name of their column.
        subtitle: What is shown.

    Returns:
        The path.
    """
    per_row, num = min(3, len(panels)), max(len(panel.conditions) for panel in panels.values())
    height, width, between = 0.4 + 0.24 * num, 2.5, 0.85
    num_rows = -(-len(panels) // per_row)
    left = 0.35 + 0.075 * max(len(name) for panel in panels.values() for name, *_ in panel.conditions)
    cell = width + left + 0.2
    figure = new_figure(max(per_row * cell + 0.2, MIN_WIDTH), num_rows * (height + between) + 0.95)
    write_title(figure, "Data and samples for each condition", subtitle)
    for number, (column, panel) in enumerate(panels.items()):
        row, place = divmod(number, per_row)
        bottom = 0.5 + (num_rows - 1 - row) * (height + between)
        axes = plot_axes(figure, (left + place * cell, bottom, width, height))
        for at, (_, data, drawn) in enumerate(panel.conditions):
            for values, colour, shift in ((data, FAINT, 0.17), (drawn, COLOURS[1], -0.17)):
                values = values[~np.isnan(values)]
                if len(values) and panel.levels:
                    _draw_shares(axes, values, len(panel.levels), shift - at)
                elif len(values):
                    _draw_spread(axes, values, colour, shift - at)
        axes.set_yticks(-np.arange(len(panel.conditions)), [name for name, *_ in panel.conditions], fontsize=8)
        axes.set_ylim(0.6 - len(panel.conditions), 0.6)
        axes.set_title(column, loc="left", fontsize=9, color=INK)
        if panel.levels:
            axes.set_xlim(0, 1)
            _name_levels(axes, panel.levels, width, height)
        if panel.is_date:
            write_dates(axes, np.ptp(axes.get_xlim()))
    return save(figure, path)


def _draw_spread(axes, values, colour, at):
    ends = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
    axes.plot(ends[[0, 4]], [at] * 2, color=colour, linewidth=0.9)
    axes.plot(ends[[1, 3]], [at] * 2, color=colour, linewidth=3.5, solid_capstyle="butt")
    axes.plot(ends[2], at, "o", color="white", markersize=2.4, zorder=3)


def _draw_shares(axes, values, num_levels, at):
    counts = np.bincount(values.astype(int), minlength=num_levels)[:num_levels]
    ends = np.concatenate([[0], np.cumsum(counts)]) / counts.sum()
    for level, (low, high) in enumerate(pairwise(ends)):
        axes.barh(at, high - low, 0.28, low, color=COLOURS[level % len(COLOURS)], alpha=0.8, linewidth=0)


def _name_levels(axes, levels, width, height):
    """Write the names of levels in their colours under the axis, as many as there is space for; sizes in inches."""
    at, step, below = 0.0, 0.063 / width, -0.28 / height  # a letter
    for number, level in enumerate(levels):
        text = level if len(level) <= MAX_LETTERS else f"{level[: MAX_LETTERS - 1]}…"
        if at + step * len(text) > 1 and number:
            axes.text(at, below, "…", transform=axes.transAxes, fontsize=7, color=INK, va="top")
            return
        colour = COLOURS[number % len(COLOURS)]
        axes.text(at, below, text, transform=axes.transAxes, fontsize=7, color=colour, va="top")
        at += step * (len(text) + 1.5)
