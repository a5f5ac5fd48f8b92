"""What a fitted model is, in words: for reports, and as a card for notebooks."""

from typing import Any

import jax

from aevb.fitted.model import FittedModel
from aevb.html import card, curve
from aevb.models.parameters import split

LIMITS = (
    "Its numbers are of data like those that the model was trained on. It reproduces what is in them, biases and "
    "errors included, and may reproduce rows that occur only once: look at the distances to the nearest training rows "
    "in the report before you publish samples of personal data. Log-likelihoods are comparable only for the same data, "
    "units and binarization."
)
BOUNDS = {"lower_bound": "training", "validation_lower_bound": "held out"}  # and what they are called


def card_of(model: FittedModel, name: str) -> str:
    """Return a fitted model as HTML for notebooks: its data, its parts, its bound and the course of learning.

    Args:
        model: The model.
        name: Of the estimator.
    """
    history, data = model.record.history, model.of_data
    last = history[-1] if history else {}
    title = f"{name}, {model.latent_dim} latent variable{'s' * (model.latent_dim != 1)}"
    facts = {"data": data_words(data), **model_facts(model), "lower bound": bound_words(last)}
    warnings = (
        () if model.record.stopped_because != "diverged" else ("Training diverged; this is the last good state.",)
    )
    return card(title, facts, warnings=warnings, picture=curve(history, "epoch", BOUNDS))


def model_facts(model: FittedModel) -> dict[str, str]:
    """Return what a model is and how it was learned, by name."""
    return {
        "latent variables": str(model.latent_dim),
        "p(x|z)": decoder_words(model.of_data),
        "p(z)": model.prior,
        "q(z|x)": encoder_words(model),
        "parameters": f"{num_parameters(model):,}",
        "estimator": f"{model.estimator}, learned by {model.learner.title}",
        "training": training_words(model),
    }


def bound_words(row: dict[str, Any]) -> str:
    """Return the bounds of a row of the history, in words.

    Example:
        >>> bound_words({"lower_bound": -2.5, "validation_lower_bound": -3.0})
        '-2.50 nats per datapoint (training), -3.00 (held out)'
    """
    found = [(words, row[name]) for name, words in BOUNDS.items() if name in row]
    unit = " nats per datapoint"
    return ", ".join(f"{value:.2f}{unit if not place else ''} ({words})" for place, (words, value) in enumerate(found))


def training_words(model: FittedModel) -> str:
    """Return how long a model was trained and why that ended, in words."""
    if not model.record.history:
        return "none"
    last = model.record.history[-1]
    words = f"{last['epoch']:,} epochs, {last['samples']:,} samples"
    words += f" in {last['seconds']:.1f} s" if "seconds" in last else ""
    refit = "" if model.record.refit_epochs is None else f"; refit for {model.record.refit_epochs:,} epochs on all rows"
    return f"{words}; stopped because: {model.record.stopped_because}{refit}"


def num_parameters(model: FittedModel) -> int:
    """Return the number of numbers that were learned; of a posterior over weights, those of their means."""
    return sum(leaf.size for leaf in jax.tree.leaves(split((model.point_generative, model.recognition)).parameters))


def data_words(model: FittedModel) -> str:
    """Return what the data are."""
    format = getattr(model.format, "table", model.format)
    shape = getattr(format, "image_shape", None)
    if shape:
        return f"images, {' x '.join(map(str, shape))}"
    number = len(format.columns) if model.is_table else format.num_columns
    kind = "sequences" if model.format is not format else "a table" if model.is_table else "rows"
    return f"{kind}, {number} column{'s' * (number != 1)}"


def decoder_words(model: FittedModel) -> str:
    """Return what p(x|z) is."""
    if model.arguments.decoder is not None:
        return f"your own decoder: {_name(model.arguments.decoder)}"
    network, activation = model.arguments.network, model.arguments.activation
    if (transition := model.arguments.option("transition", None)) is not None:
        named = transition if isinstance(transition, str) else _name(transition)
        return f"a family for each column; {named} transition"
    if network != "mlp":
        return f"{model.likelihood}; {network}, {activation}, images {model.matrix.image_shape}"
    layers = ", ".join(map(str, model.arguments.hidden_for(is_table=model.is_table))) or "none"
    chosen = ", chosen from the data" if model.arguments.likelihood == "auto" else ""
    family = "a family for each column" if model.is_table else model.likelihood
    return f"{family}{chosen}; hidden layers {layers}, {activation}"


def encoder_words(model: FittedModel) -> str:
    """Return what q(z|x) is."""
    if model.recognition is None:
        return "no encoder"
    if model.arguments.encoder is not None:
        return f"your own encoder: {_name(model.arguments.encoder)}"
    if (kind := model.arguments.option("recognition", None)) is not None:
        return f"{kind}, {model.arguments.network} over the observations"
    return model.arguments.posterior + ("" if model.learner.needs_encoder else ", one for each row (no encoder)")


def _name(part):
    return getattr(part, "__name__", type(part).__name__)
