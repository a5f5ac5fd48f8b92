"""Pictures of predictions: whether probabilities and intervals can be believed, and what is mistaken for what."""

from pathlib import Path

import numpy as np

from aevb.report.canvas import COLOURS, FAINT, INK, RULE, image_axes, new_figure, plot_axes, save, write_title
from aevb.report.label_measures import NUM_BINS, Reliability

SIDE, GAP = 3.6, 0.9  # of panels, in inches


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
    n = np.maximum(found.counts, 1)
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8, linestyle=(0, (4, 4)))
    for low, high, confidence, accuracy in zip(edges, edges[1:], found.confidence, found.accuracy, strict=False):
        axes.fill_between([low, high], 0, np.nan_to_num(accuracy), color=COLOURS[0], alpha=0.3, linewidth=0)
        axes.plot([confidence] * 2, [confidence, accuracy], color=COLOURS[1], linewidth=1.2)
    errors = np.sqrt(np.clip(found.accuracy * (1 - found.accuracy), 1e-4, None) / n)
    style = {"fmt": "o", "color": INK, "markersize": 3.5, "linewidth": 0.9}
    axes.errorbar(found.confidence[has_rows], found.accuracy[has_rows], 2 * errors[has_rows], **style)
    axes.set(xlim=(0, 1), ylim=(0, 1.02))
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


def plot_spreads(path, panels: dict[str, list[tuple[str, np.ndarray, np.ndarray]]], subtitle: str) -> Path:
    """Draw columns of data and of samples, for each of several conditions: medians, quartiles and central 90%.

    Args:
        path: Path of the PNG.
        panels: For each column, by name, the conditions' names, data (n,) and samples (m,); data may be empty.
        subtitle: What is shown.

    Returns:
        The path.
    """
    per_row, num = 3, max(len(rows) for rows in panels.values())
    height, width = 0.4 + 0.24 * num, 2.3
    num_rows = -(-len(panels) // per_row)
    left = 0.35 + 0.075 * max(len(name) for rows in panels.values() for name, *_ in rows)
    cell = width + left + 0.2
    figure = new_figure(per_row * cell + 0.2, num_rows * (height + 0.65) + 0.95)
    write_title(figure, "Data and samples for each condition", subtitle)
    for number, (column, rows) in enumerate(panels.items()):
        row, place = divmod(number, per_row)
        bottom = 0.35 + (num_rows - 1 - row) * (height + 0.65)
        axes = plot_axes(figure, (left + place * cell, bottom, width, height))
        for at, (_, data, drawn) in enumerate(rows):
            for values, colour, shift in ((data, FAINT, 0.17), (drawn, COLOURS[1], -0.17)):
                if len(values):
                    ends = np.nanquantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
                    axes.plot(ends[[0, 4]], [-at + shift] * 2, color=colour, linewidth=0.9)
                    axes.plot(ends[[1, 3]], [-at + shift] * 2, color=colour, linewidth=3.5, solid_capstyle="butt")
                    axes.plot(ends[2], -at + shift, "o", color="white", markersize=2.4, zorder=3)
        axes.set_yticks(-np.arange(len(rows)), [name for name, *_ in rows], fontsize=8)
        axes.set_ylim(0.6 - len(rows), 0.6)
        axes.set_title(column, loc="left", fontsize=9, color=INK)
    return save(figure, path)
