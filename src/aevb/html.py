"""Small HTML cards for notebooks: facts, warnings and a curve, without scripts, in the colours of the notebook."""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

_BOX = "display:inline-block;border:1px solid rgba(128,128,128,.4);border-radius:6px;padding:8px 12px;max-width:46rem"
_CELL = "text-align:left;vertical-align:top;padding:2px 14px 2px 0;background:none"
_WARNING = "border-left:4px solid #d4572a;padding-left:8px;margin:6px 0"
_WIDTH, _HEIGHT, _MARGIN = 300, 90, 4
_MOST_POINTS = 300  # of a curve: a page may show many
_COLOURS = ("#3b82c4", "#d4572a")  # legible on white and on black


def card(
    title: str, facts: Mapping[str, Any], *, warnings: Sequence[str] = (), picture: str = "", table: str = ""
) -> str:
    """Return a box with a title, a table of facts, warnings, a picture and a table, which are HTML.

    Example:
        >>> "<b>A &lt; B</b>" in card("A < B", {"rows": 3})
        True
    """
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL};font-weight:normal;opacity:.7">{html.escape(name)}</th>'
        f'<td style="{_CELL}">{html.escape(str(value))}</td></tr>'
        for name, value in facts.items()
        if value not in (None, "")
    )
    said = "".join(f'<p style="{_WARNING}">{html.escape(text)}</p>' for text in warnings)
    return (
        f'<div style="{_BOX}"><b>{html.escape(title)}</b><table style="margin:4px 0;border:0">{rows}</table>'
        f"{said}{picture}{table}</div>"
    )


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML."""
    heads = "".join(f'<th scope="col" style="{_CELL}">{html.escape(name)}</th>' for name in names)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{html.escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f'<table style="margin:4px 0;border:0"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def curve(history: Sequence[Mapping[str, Any]], x: str, series: Mapping[str, str]) -> str:
    """Return curves as an inline SVG picture; empty if there are fewer than two finite points.

    Args:
        history: Rows with numbers by name.
        x: The name of the horizontal axis.
        series: Names of the numbers to draw, two at most, and their words.

    Example:
        >>> rows = [{"epoch": 1, "lower_bound": -3.0}, {"epoch": 2, "lower_bound": -2.0}]
        >>> print(curve(rows, "epoch", {"lower_bound": "training"})[:4])
        <svg
    """
    step = -(-len(history) // _MOST_POINTS) or 1
    kept = [row for place, row in enumerate(history) if place % step == 0 or place == len(history) - 1]
    lines = {
        words: [(row[x], row[name]) for row in kept if name in row and math.isfinite(row[name])]
        for name, words in series.items()
    }
    lines = {words: points for words, points in lines.items() if len(points) > 1}
    if not lines:
        return ""
    values = [value for points in lines.values() for _, value in points]
    places = [place for points in lines.values() for place, _ in points]
    low, high = _clipped(values)

    def at(place, value):
        share = (place - min(places)) / (max(places) - min(places) or 1)
        height = (min(max(value, low), high) - low) / (high - low or 1)
        right, down = share * (_WIDTH - 2 * _MARGIN), (1 - height) * (_HEIGHT - 2 * _MARGIN)
        return f"{_MARGIN + right:.1f},{_MARGIN + down:.1f}"

    drawn = "".join(
        f'<polyline points="{" ".join(at(*point) for point in points)}" fill="none" stroke="{colour}"/>'
        for points, colour in zip(lines.values(), _COLOURS, strict=False)
    )
    said = ", ".join(f"{words} from {points[0][1]:.4g} to {points[-1][1]:.4g}" for words, points in lines.items())
    key = " ".join(
        f'<span style="color:{colour}">■</span> {html.escape(words)}'
        for words, colour in zip(lines, _COLOURS, strict=False)
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{html.escape(said)}" style="max-width:100%;border-bottom:1px solid rgba(128,128,128,.4);'
        f'stroke-width:1.5">{drawn}</svg>'
        f'<div style="font-size:85%;opacity:.85">{key}, {html.escape(x)} {min(places):g} to {max(places):g}, '
        f"from {low:.4g} to {high:.4g}</div>"
    )


def _clipped(values):
    """Return the range to draw: the lowest tenth is cut off, since the first epochs would flatten the others."""
    ordered = sorted(values)
    return ordered[len(ordered) // 10], ordered[-1]
