"""The columns of a table by themselves: real entries beside synthetic ones."""

from pathlib import Path

import numpy as np
from matplotlib.ticker import NullLocator

from aevb.data.frames import ColumnFormat
from aevb.data.frames.cells import DATE
from aevb.report.canvas import COLOURS, FAINT, INK, shortened
from aevb.report.columns import draw_panels
from aevb.report.dates import write_dates
from aevb.report.table_rows import RealAndSynthetic, is_label, is_time

NUM_BINS, MAX_WHOLE = 20, 30  # whole numbers with few different values get a bar each
MAX_LEVELS = 8  # of which a panel shows the names


def shares(column: ColumnFormat, real: np.ndarray, synthetic: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the edges of bins, and the shares of real and synthetic entries in them; a bin for each label.

    Numbers beyond the ends, between which 99 % of the real entries lie, count in the first and the last bin.

    Args:
        column: The column.
        real: (n,), numbers or codes of labels, NaN where missing.
        synthetic: (m,).
    """
    real, synthetic = real[~np.isnan(real)], synthetic[~np.isnan(synthetic)]
    edges = _edges(column, real)
    inside = (np.clip(values, edges[0], np.nextafter(edges[-1], edges[0])) for values in (real, synthetic))
    return edges, *(np.histogram(values, edges)[0] / max(len(values), 1) for values in inside)  # type: ignore


def _edges(column, real):
    if is_label(column):
        return np.arange(len(column.levels) + 1) - 0.5
    low, high = np.quantile(real, [0.005, 0.995]) if len(real) else (0.0, 1.0)
    if column.is_whole and not is_time(column) and high - low <= MAX_WHOLE:
        return np.arange(np.floor(low), np.ceil(high) + 2) - 0.5
    return np.linspace(low, high if high > low else low + 1, NUM_BINS + 1)


def marginals(columns: tuple[ColumnFormat, ...], rows: RealAndSynthetic, path) -> Path:
    """Draw a histogram of each column of numbers and bars for each column of labels, of real and synthetic rows.

    Args:
        columns: The columns.
        rows: See :func:`aevb.report.table_rows.real_and_synthetic`.
        path: Path of the PNG.

    Returns:
        The path.
    """

    def draw(axes, place):
        column, entries = columns[place], (rows.real[:, place], rows.synthetic[:, place])
        (_draw_labels if is_label(column) else _draw_numbers)(axes, column, *shares(column, *entries))

    subtitle = f"grey: {len(rows.real):,} real rows; red: {len(rows.synthetic):,} synthetic rows"
    names = [column.name for column in columns]
    return draw_panels(path, "Columns: real and synthetic", subtitle, len(columns), names, draw)


def _draw_numbers(axes, column, edges, real, synthetic):
    axes.stairs(real, edges, fill=True, color=FAINT, alpha=0.4)
    axes.stairs(synthetic, edges, color=COLOURS[1], linewidth=1.4)
    axes.set_yticks([])
    axes.set_ylim(0, 1.08 * max(real.max(), synthetic.max()))
    if column.storage.group == DATE:
        write_dates(axes, edges[-1] - edges[0])


def _draw_labels(axes, column, edges, real, synthetic):
    """Draw a bar for each label with its name, in their order if they have one, else the most frequent first.

    The rarest of many labels are drawn as one.
    """
    has_order = column.kind == "ordinal" or not any(isinstance(level, str) for level in column.levels)
    keeps_order = has_order and len(real) <= MAX_LEVELS
    order = np.arange(len(real)) if keeps_order else np.argsort(-real, kind="stable")
    shown, rest = (order, []) if len(order) <= MAX_LEVELS else np.split(order, [MAX_LEVELS - 1])
    names = [str(column.levels[code]) for code in shown] + [f"{len(rest):,} others"] * bool(len(rest))
    bars = [[*values[shown], *([values[rest].sum()] if len(rest) else [])] for values in (real, synthetic)]
    y = np.arange(len(names))
    axes.barh(y, bars[0], color=FAINT, alpha=0.4, height=0.8)
    axes.barh(y, bars[1], facecolor="none", edgecolor=COLOURS[1], linewidth=1.2, height=0.8)
    widest = max(map(max, bars))
    for place, name in zip(y, names, strict=True):
        short = shortened(name, 18)
        axes.text(0.03 * widest, place, short, fontsize=6.5, color=INK, va="center")
    axes.set(ylim=(len(names) - 0.5, -0.5), xlim=(0, 1.05 * widest))
    axes.yaxis.set_major_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
