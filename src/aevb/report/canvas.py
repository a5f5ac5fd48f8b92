"""The common style of all pictures (sizes, colours, fonts), and writing them to disk."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from aevb.files import written_whole

DPI = 160
INK, FAINT, RULE = "#1f2328", "#6e7781", "#d8dee4"  # text, secondary text, thin lines
# After Petroff, "Accessible color sequences for data visualization" (2021), with its greys replaced.
COLOURS = (
    "#3f90da",
    "#bd1f01",
    "#ffa90e",
    "#832db6",
    "#5fb7b9",
    "#e76300",
    "#717581",
    "#a96b59",
    "#e377c2",
    "#2f8f4e",
)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty white figure of this size in inches."""
    return Figure(figsize=(width, height), dpi=DPI, facecolor="white")


def save(figure: Figure, path) -> Path:
    """Write a figure as PNG, and next to it as SVG, each atomically; return the path of the PNG."""
    path = Path(path)
    with written_whole(path) as scratch:
        figure.savefig(scratch, format="png", dpi=DPI, metadata={"Software": "aevb"})
    with written_whole(path.with_suffix(".svg")) as scratch:
        figure.savefig(scratch, format="svg", dpi=DPI, metadata={"Creator": "aevb", "Date": None})
    return path


def plot_axes(figure: Figure, box: tuple[float, float, float, float]) -> Axes:
    """Return axes for a plot, with few lines; the box is (left, bottom, width, height) in inches."""
    axes = figure.add_axes(_in_fractions(figure, box))
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(which="both", colors=FAINT, labelcolor=INK, labelsize=9, width=0.8)
    axes.set_axisbelow(True)
    return axes


def image_axes(figure: Figure, box: tuple[float, float, float, float]) -> Axes:
    """Return axes without any lines; the box is (left, bottom, width, height) in inches."""
    axes = figure.add_axes(_in_fractions(figure, box))
    axes.spines[:].set_visible(False)
    axes.set(xticks=[], yticks=[])
    return axes


def write_title(figure: Figure, title: str, subtitle: str = "", left: float = 0.3) -> None:
    """Write a heading in the top left corner, and a subtitle below it."""
    width, height = figure.get_size_inches()
    style: dict[str, Any] = {"ha": "left", "va": "baseline"}
    figure.text(left / width, 1 - 0.40 / height, title, color=INK, fontsize=13, weight="bold", **style)
    figure.text(left / width, 1 - 0.64 / height, subtitle, color=FAINT, fontsize=9, **style)


def shortened(name: str, most: int) -> str:
    """Return a name with at most so many letters, cut in the middle: long names often begin alike.

    Example:
        >>> shortened("average_income_2019", 12), shortened("age", 12)
        ('averag…_2019', 'age')
    """
    return name if len(name) <= most else f"{name[: most // 2]}…{name[len(name) - (most - 1) // 2 :]}"


def short_names(names: list[str], most: int) -> list[str]:
    """Return names with at most `most` characters; if some became the same, without what all begin and end with.

    Example:
        >>> short_names(["mean_of_the_age_in_2019", "mean_of_the_sex_in_2019"], 12)
        ['…age…', '…sex…']
    """
    short = [shortened(name, most) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    begin = _num_common(names)
    rest = [name[begin:] for name in names]
    end = _num_common([name[::-1] for name in rest])
    return [shortened(f"{'…' * (begin > 0)}{name[: len(name) - end]}{'…' * (end > 0)}", most) for name in rest]


def _num_common(names):
    """Return the number of letters with which all names begin."""
    first, last = min(names), max(names)
    differs = [one != other for one, other in zip(first, last, strict=False)]
    return differs.index(True) if True in differs else len(first)


def tile(images: np.ndarray, columns: int) -> np.ndarray:
    """Arrange images of one shape in rows, starting at the top left, without gaps.

    Args:
        images: (n, height, width), or (n, height, width, channels).
        columns: Images in a row.

    Returns:
        One image; the unused part of the last row is NaN.

    Example:
        >>> tile(np.arange(4.0).reshape(4, 1, 1), columns=2)
        array([[0., 1.],
               [2., 3.]])
    """
    num_images, height, width, *channels = images.shape
    sheet = np.full((-(-num_images // columns) * height, columns * width, *channels), np.nan)
    for number, image in enumerate(images):
        row, column = divmod(number, columns)
        sheet[row * height : (row + 1) * height, column * width : (column + 1) * width] = image
    return sheet


def _in_fractions(figure, box):
    width, height = figure.get_size_inches()
    left, bottom, box_width, box_height = box
    return (left / width, bottom / height, box_width / width, box_height / height)
