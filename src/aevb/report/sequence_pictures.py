"""The pictures in the report of a model of sequences."""

from functools import lru_cache

from aevb.explorer.views import Views, views_of
from aevb.report.canvas import save
from aevb.report.learning import curve_words, learning_curve
from aevb.report.picture import Picture, words
from aevb.report.series import plot_forecasts, plot_paths, plot_reconstructions

NUM_SHOWN = 6


@lru_cache(maxsize=1)  # for all pictures of one report
def _views(model, data) -> Views:
    return views_of(model, data, NUM_SHOWN)


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
