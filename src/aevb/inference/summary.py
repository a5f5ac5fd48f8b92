"""Moments and quantiles of draws as a table."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from aevb.html import table

QUANTILES = {"5%": 0.05, "50%": 0.5, "95%": 0.95}


@dataclass(frozen=True, repr=False)
class Summary:
    """One row for each number: its name, mean, standard deviation, quantiles, and how far to trust them.

    Args:
        rows: Dictionaries with the same keys; ``pandas.DataFrame(summary.rows)`` makes a frame of them.
    """

    rows: list[dict[str, Any]]

    def __getitem__(self, name: str) -> dict[str, Any]:
        """Return the row with this name, such as ``"theta[1]"``."""
        for row in self.rows:
            if row["name"] == name:
                return row
        raise KeyError(name)

    def _repr_html_(self) -> str:
        return table(list(self.rows[0]), [[_shown(value) for value in row.values()] for row in self.rows])

    def __repr__(self) -> str:
        cells = [list(self.rows[0])] + [[_shown(value) for value in row.values()] for row in self.rows]
        widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
        lines = ["  ".join(map(str.ljust, row[:1], widths)) + _right(row[1:], widths[1:]) for row in cells]
        return "\n".join(lines)


def summarize(draws: Any, **columns: Any) -> Summary:
    """Summarize draws, an array or a dictionary of arrays with the draws along the first axis.

    Args:
        draws: The draws.
        columns: More columns, arrays or dictionaries with the shape of one draw.

    Example:
        >>> print(summarize({"theta": np.array([[0.0, 2.0], [2.0, 2.0]])}))
        name      mean  std   5%  50%  95%
        theta[0]     1    1  0.1    1  1.9
        theta[1]     2    0    2    2    2
    """
    named = draws if isinstance(draws, dict) else {"variables": draws}
    extra = {name: value if isinstance(value, dict) else {"variables": value} for name, value in columns.items()}
    rows = []
    for name, values in named.items():
        values = np.asarray(values)
        for place in np.ndindex(values.shape[1:]):
            of_one = values[(slice(None), *place)]
            quantiles = np.quantile(of_one, list(QUANTILES.values()))
            row = {"name": name + (f"[{','.join(map(str, place))}]" if place else "")}
            row |= {"mean": float(of_one.mean()), "std": float(of_one.std())}
            row |= dict(zip(QUANTILES, map(float, quantiles), strict=True))
            row |= {column: float(np.asarray(of[name])[place]) for column, of in extra.items()}
            rows.append(row)
    return Summary(rows)


def _shown(value):
    return value if isinstance(value, str) else f"{value:.4g}"


def _right(cells, widths):
    return "".join(f"  {cell.rjust(width)}" for cell, width in zip(cells, widths, strict=True))
