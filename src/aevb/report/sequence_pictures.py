"""The pictures in the report of a model of sequences."""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from aevb.explorer.views import Views, views_of
from aevb.report.canvas import save
from aevb.report.learning import curve_words, learning_curve
from aevb.report.picture import Picture, words
from aevb.report.series import plot_forecasts, plot_past_forecasts, plot_paths, plot_reconstructions

NUM_SHOWN = 6
PAST_SHOWN, PAST_SHARE = 2, 0.1  # sequences whose last part is forecast, and how large that part is
FEWEST, MAX_LATER = 10, 100  # steps of such a sequence at least, and steps of that part at most


@lru_cache(maxsize=1)  # for all pictures of one report
def _views(model, data) -> Views:
    return views_of(model, data, NUM_SHOWN)


def _has_past(data) -> bool:
    return data.test.controls is None and bool(np.any(data.test.lengths >= FEWEST))


@lru_cache(maxsize=1)
def _past_views(model, data) -> Views:
    """Return forecasts of the last part of sequences that are long enough, from the steps before."""
    numbers = np.flatnonzero(data.test.lengths >= FEWEST)[:PAST_SHOWN]
    some = data.test.some(numbers)
    num_later = np.minimum(np.round(PAST_SHARE * some.lengths).astype(int), MAX_LATER)
    known = some.lengths - num_later
    steps = max(float(elapsed[start:].sum()) for elapsed, start in zip(some.elapsed, known, strict=True))
    times = None if data.times is None else tuple(data.times[number] for number in numbers)
    data = replace(data, test=some, names=tuple(data.names[number] for number in numbers), times=times)
    return views_of(model, data, PAST_SHOWN, min(math.ceil(steps), 2 * MAX_LATER), known)


def _past_words(model, data):
    said = "The model is given the steps before the line, and forecasts those after it."
    if data.train is not None and data.is_held_out:
        return f"{said} It did not see these sequences during training."
    if data.train is not None:
        return f"{said} It was trained on all of these steps, so that forecasts of new ones are less good."
    return said


def _hidden(model, data):
    num = _views(model, data).num_hidden
    return f" {num} further columns of numbers are not shown." if num else ""


SEQUENCE_PICTURES: dict[str, Picture] = {
    "reconstructions": Picture(
        "Observed and reconstructed",
        lambda model, data: (
            "What the model expects at each step, given the whole sequence: of numbers the median and central "
            "intervals, of labels and binary columns the probabilities, as shades of blue. Where nothing was observed, "
            "the bands are imputations." + _hidden(model, data)
        ),
        lambda model, data: True,
        lambda model, data, path, seed: save(plot_reconstructions(_views(model, data)), path),
    ),
    "forecasts": Picture(
        "Forecasts",
        words(
            "Draws of the steps after the last observation. The bands widen with the model's uncertainty; "
            "aevb forecast and the method forecast compute them for any number of steps."
        ),
        lambda model, data: _views(model, data).steps > 0,
        lambda model, data, path, seed: save(plot_forecasts(_views(model, data)), path),
    ),
    "past_forecasts": Picture(
        "Forecasts and what was observed",
        _past_words,
        lambda model, data: _has_past(data),
        lambda model, data, path, seed: save(plot_past_forecasts(_past_views(model, data)), path),
    ),
    "latent_paths": Picture(
        "The states as paths",
        lambda model, data: (
            "Means of q(z_t|x). "
            + ("The two directions in which they vary most." if model.latent_dim > 2 else "")
            + " The interactive page shows the path of each sequence step by step."
        ),
        lambda model, data: True,
        lambda model, data, path, seed: save(plot_paths(_views(model, data)), path),
    ),
    "learning_curve": Picture(
        "Training",
        lambda model, data: (
            "The lower bound during training, and below it its two terms, in nats per sequence: longer sequences count "
            f"more. {curve_words(model)}"
        ),
        lambda model, data: True,
        lambda model, data, path, seed: learning_curve(model, path, "sequence"),
    ),
}
