"""Axes of dates."""

import math

from matplotlib.dates import DateFormatter, DayLocator, MonthLocator, YearLocator
from matplotlib.ticker import MaxNLocator


def write_dates(axes, days: float) -> None:
    """Write dates under a small panel, whose numbers are days and which spans so many: two or three of them."""
    locator, form = _date_ticks(days)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(DateFormatter(form))
    axes.tick_params(axis="x", labelsize=6.5)


def _date_ticks(days):
    if days > 3 * 365:
        return YearLocator(math.ceil(days / 365 / 3)), "%Y"
    if days > 90:
        return MonthLocator(interval=math.ceil(days / 30 / 2)), "%b %Y"
    if days > 3:
        return DayLocator(interval=math.ceil(days / 2.5)), "%d %b"
    return MaxNLocator(2), "%d %b %H:%M"
