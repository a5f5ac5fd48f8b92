"""The learning curves: the bound and its two terms, on training and held-out rows."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from aevb.estimators import is_weighted
from aevb.fitted import FittedModel, fitted_model
from aevb.report.canvas import COLOURS, INK, RULE, new_figure, plot_axes, save, write_title

_CURVES = {"training": ("", COLOURS[0]), "held out": ("validation_", COLOURS[1])}  # prefix of the columns, colour
_TERMS = {"reconstruction": "Reconstruction, E log p(x|z)", "kl_divergence": "KL(q(z|x) ‖ p(z))"}

FEW = 6  # rows of a history that has no later part
REACH = 8  # how far axes reach beyond the values of the later half, in units of their range,
SMALLEST = 0.1  # which is at least so many nats

_SMALL: dict[str, Any] = {"fontsize": 9, "va": "top"}


def learning_curve(vae: Any, path: str | Path | None, datapoint: str = "row") -> Path:
    """Draw the bound and its two terms against the number of training samples, for training and held-out rows.

    Args:
        vae: A fitted model, or its estimator.
        path: Path of the PNG.
        datapoint: What a datapoint is called.

    Returns:
        The path.
    """
    model = fitted_model(vae)
    history = model.record.history
    column = "lower_bound" if _columns(history, "lower_bound") else "log_joint"  # of Monte Carlo EM, which has no bound
    terms = [name for name in _TERMS if _columns(history, name)]
    below = 2.55 if terms else 0.0
    figure = new_figure(7.2, 4.6 + below)
    subtitle = f"nats per {datapoint}; the training curve is the average over each epoch, while the parameters change"
    write_title(figure, _title(model, column), subtitle)
    axes = plot_axes(figure, (0.78, 0.62 + below, 5.5, 3.1))
    _draw(axes, history, column)
    _mark_best(axes, history)
    _name_ends(axes, history, column)
    axes.set_xlabel(
        f"training {'samples' if datapoint == 'row' else datapoint + 's'} seen (log scale)", color=INK, fontsize=9
    )
    for number, name in enumerate(terms):
        axes = plot_axes(figure, (0.78 + 3.1 * number, 0.35, 2.4, 1.65))
        axes.set_title(_TERMS[name], color=INK, fontsize=10, loc="left")
        _draw(axes, history, name)
        axes.locator_params(axis="y", nbins=5)
        # Within a factor of three LogLocator finds no tick and chooses many, whose labels overlap in a small panel.
        is_short = history[-1]["samples"] < 10 * history[0]["samples"]
        axes.xaxis.set_major_locator(MaxNLocator(3) if is_short else LogLocator(base=10, subs=(1, 3)))
        axes.tick_params(labelsize=8)
    return save(figure, path)


def _title(model, column):
    if column == "log_joint":
        return "log p(x, z) during training"
    if is_weighted(getattr(model, "estimator_", "")):
        return f"Importance-weighted bound (L = {model.num_samples}) during training"
    return "Lower bound during training"


def _columns(history, name):
    """Return the columns of the history that are curves of this quantity: name, values, colour.

    A row may lack some, as those of `partial_fit` do, which holds out nothing; the value is then NaN.
    """
    columns = {curve: (prefix + name, colour) for curve, (prefix, colour) in _CURVES.items()}
    return [
        (curve, [row.get(column, np.nan) for row in history], colour)
        for curve, (column, colour) in columns.items()
        if any(column in row for row in history)
    ]


def _draw(axes: Axes, history, name):
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    seen, curves = [row["samples"] for row in history], _columns(history, name)
    for _, values, colour in curves:
        axes.plot(seen, values, color=colour, linewidth=1.8, marker="o" if len(seen) == 1 else None, markersize=4)
    axes.set_ylim(*limits([values for _, values, _ in curves], marks_best=name == "lower_bound"))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}".replace("-", "−")))


def limits(curves: list[list[float]], *, marks_best: bool = False) -> tuple[float, float]:
    """Return the limits of axes that show all values, except those far from the later ones.

    A few first epochs, or a single spike, may lie so far away that the rest would look flat.

    Args:
        curves: The values of training, and those of held-out rows if there are any.
        marks_best: Whether the highest held-out value is marked, and so has to be seen.

    Example:
        >>> low, high = limits([[-1e6, -50.0, -9.0, -8.0, -7.5, -7.2, -7.0, -6.9]])
        >>> round(low), round(high)
        (-12, -6)
    """
    low, high = _range(curves, marks_best)
    margin = max(0.08 * (high - low), 0.02 * abs(high), 1e-3)
    return low - margin, high + 2 * margin


def _range(curves, marks_best):
    num, every = len(curves[0]), np.concatenate(curves)
    if num < FEW:
        # The first epoch's average includes its first steps, far from everything else.
        shown = _finite(every[1:] if len(curves) == 2 else every)
        return float(shown.min()), float(shown.max())
    marked = [_finite(values)[-1] for values in curves] + [_finite(values).max() for values in curves[1:] if marks_best]
    later = np.quantile(_finite(np.concatenate([values[num // 2 :] for values in curves])), [0.05, 0.95])
    low, high = min(later[0], *marked), max(later[1], *marked)
    reach, every = REACH * max(high - low, SMALLEST), _finite(every)
    return float(max(every.min(), low - reach)), float(min(every.max(), high + reach))


def _finite(values):
    """Return the values that can be drawn; 0 if none can."""
    values = np.asarray(values, float)
    return values[np.isfinite(values)] if np.isfinite(values).any() else np.zeros(1)


def _mark_best(axes, history):
    """Mark the epoch whose parameters were kept; there is room above a rising curve and to its left."""
    for _, bounds, colour in _columns(history, "lower_bound")[1:]:
        best = int(np.nanargmax(bounds)) if np.isfinite(bounds).any() else 0
        axes.plot(history[best]["samples"], bounds[best], "o", color=colour, markersize=7, markeredgecolor="white")
        value = f"{bounds[best]:.1f}".replace("-", "−")
        name = f"● best held-out epoch: {value}"
        axes.text(0.02, 0.97, name, transform=axes.transAxes, color=colour, **_SMALL)


def _name_ends(axes, history, column):
    """Write each curve's name at its end, without overlaps."""
    points_per_pixel = 72 / axes.figure.dpi
    last, names = np.inf, {} if column == "lower_bound" else {"training": "at samples"}
    ends = [(name, *_end(history, values), colour) for name, values, colour in _columns(history, column)]
    for name, x, y, colour in sorted(ends, key=lambda end: -end[2]):
        height = axes.transData.transform((x, y))[1] * points_per_pixel
        place = min(height, last - 13)
        last = place
        style: dict[str, Any] = {"textcoords": "offset points", "va": "center", "annotation_clip": False}
        style |= {"xytext": (9, place - height), "color": colour, "fontsize": 10}
        axes.annotate(names.get(name, name), (x, y), **style)


def _end(history, values):
    """Return the last point of a curve, (samples, value)."""
    known = np.flatnonzero(np.isfinite(values))
    place = int(known[-1]) if len(known) else -1
    return history[place]["samples"], values[place]


def curve_words(model: FittedModel) -> str:
    """Return what the curves say: about overfitting, which parameters were kept, and what the axes leave out."""
    return f"{_overfitting(model)}{_outside(model.record.history)}"


def _overfitting(model):
    record = model.record
    if record.refit_epochs is None and not any("validation_lower_bound" in row for row in record.history):
        return "Nothing was held out from training, so overfitting would not show here."
    kept = "The parameters of the best held-out epoch are kept."
    if record.refit_epochs is not None:
        kept = "In the end the model was refit on all training rows, including these, for as many epochs as were best."
    return f"If the held-out curve falls behind the training curve, the model is overfitting. {kept}"


def _outside(history):
    """Say how many points lie outside of the axes; nothing if none does."""
    num_outside = num_points = 0
    for name in ("lower_bound", "log_joint", *_TERMS) if history else ():
        if curves := [values for _, values, _ in _columns(history, name)]:
            (low, high), every = limits(curves, marks_best=name == "lower_bound"), np.concatenate(curves)
            num_outside += np.count_nonzero((every < low) | (every > high))
            num_points += np.count_nonzero(~np.isnan(every))
    if not num_outside:
        return ""
    lie = "lies" if num_outside == 1 else "lie"
    return f" The axes show the range of the later epochs; {num_outside} of {num_points} points {lie} outside of them."
