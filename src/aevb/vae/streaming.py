"""Learning from batches that are seen once: the state that `partial_fit` carries from call to call."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aevb.arrays import num_rows
from aevb.data.frames import as_table
from aevb.data.reading import column_names, read_training_data
from aevb.data.training_data import units_for
from aevb.estimators import name_of
from aevb.fitted import FittedModel, TrainingRecord
from aevb.fitted.design import Design
from aevb.fitted.model import seed_of
from aevb.fitted.steps import initial_learning_rate, with_optimizer_state
from aevb.programs import keep_programs
from aevb.settings import Arguments
from aevb.training import ADAGRAD_STEP_SIZES, Trained, train
from aevb.training.budget import AUTO, batch_size_for
from aevb.vae.fitting import Keys, design_for, format_of
from aevb.vae.structure import check_structure


class Stream:
    """What is learned from one batch to the next. Copies and pickles are empty: they go on from the model itself.

    Args:
        design: What the models are built from.
        generative: The generative model that it belongs to.
        learner: The learner.
        state: Its state.
    """

    def __init__(self, design: Design | None = None, generative: Any = None, learner: Any = None, state: Any = None):
        self.design, self.generative, self.learner, self.state = design, generative, learner, state

    def __reduce__(self):
        return Stream, ()

    def serves(self, arguments: Arguments, model: FittedModel) -> bool:
        """Whether it goes on from this model, with these arguments."""
        if self.design is None or self.generative is not model.generative:
            return False
        return all(getattr(self.design.arguments, name) == getattr(arguments, name) for name in _LEARNER_ARGUMENTS)


_LEARNER_ARGUMENTS = ("learner", "estimator", "num_samples", "optimizer", "forgetting")


def learn_batch(stream: Stream, design: Design, model: FittedModel, X: Any, optimizer_state: Any) -> tuple:
    """Learn one batch (n, D) in one pass.

    Args:
        stream: The stream so far.
        design: What the models are built from, with the present arguments.
        model: The model so far.
        X: The batch.
        optimizer_state: Of the model, used if the stream cannot go on; None for none.

    Returns:
        The model, the stream, and what happened.
    """
    rate = model.record.learning_rate
    if rate is None:
        rate = ADAGRAD_STEP_SIZES[1]  # a stream cannot be read twice to choose it
    history = model.record.history
    key = jax.random.fold_in(jax.random.key(model.seed), 1 + len(history))
    if stream.serves(design.arguments, model):
        learner, state = stream.learner, stream.state._replace(learning_rate=jnp.asarray(rate))
    else:
        learner, state = design.start((model.generative, model.recognition), None, rate, key)
        state = with_optimizer_state(state, optimizer_state, model.arguments, design.arguments)
    size, numbers = batch_size_for(num_rows(X), design.arguments.batch_size), np.arange(num_rows(X))
    trained = train(learner, state, model.source(X), numbers, key=key, batch_size=size, max_epochs=1)
    generative, recognition = learner.models(trained.state)
    record = replace(
        model.record,
        history=history + _numbered(trained, history),
        stopped_because=trained.stopped_because,
        refit_epochs=None,
        learning_rate=rate / 2**trained.halvings,
    )
    facts: dict[str, Any] = {"generative": generative, "recognition": recognition, "record": record}
    model = replace(model, arguments=design.arguments, estimator=name_of(learner.estimator), **facts)
    return model, Stream(design, generative, learner, trained.state), trained


def check_first_batch(X: Any, arguments: Arguments) -> None:
    """Refuse a table as the first batch: its few rows would decide kinds, labels and units for all others."""
    if arguments.option("conditional", False):
        raise ValueError(
            "partial_fit: with conditional=True the labels and units of y are learned from many rows: call fit(X, y) "
            "with the first of them, then partial_fit."
        )
    if arguments.decoder is None and as_table(X, arguments.likelihood) is not None:
        raise ValueError(
            "partial_fit: X is a table, with missing entries or columns of different kinds. Kinds, labels and units "
            "are learned from many rows: call fit(X) with the first of them, then partial_fit."
        )


def check_batch(model: FittedModel, X: np.ndarray) -> None:
    """Refuse rows with missing entries if the encoder has not learned to read them."""
    if model.with_holes(X).any():
        row = int(np.argmax(model.with_holes(X)))
        raise ValueError(
            f"partial_fit: row {row} has missing entries (rows counted from 0), but there were none in the rows that "
            "the model was fitted to. Fill them in, partial_fit(vae.impute(X)), or call fit(X)."
        )


def first_model(estimator: Any, arguments: Arguments, X: np.ndarray, given: Any = None) -> tuple[FittedModel, Design]:
    """Return the model from which a stream starts, with the units of its first batch (n, D), and its design."""
    if arguments.latent_dim == AUTO:
        raise ValueError("partial_fit: latent_dim='auto' needs held-out rows. Give a number, or call fit(X).")
    keep_programs()
    seed, has_decoder = seed_of(arguments.random_state), arguments.decoder is not None
    reading = read_training_data(X, arguments.likelihood, own_decoder=has_decoder, columns=column_names(estimator))
    units = units_for(X, reading)
    format = format_of(estimator, reading, units)
    latent_dim = int(arguments.latent_dim_for(reading.likelihood, format.num_columns))
    design = design_for(arguments, reading.likelihood, units, format, latent_dim, given)
    record = TrainingRecord(learning_rate=initial_learning_rate(arguments), likelihood_reason=reading.reason)
    facts = {"likelihood": design.likelihood, "latent_dim": design.latent_dim, "record": record, "given": given}
    return FittedModel(*design.checked_models(Keys.of(seed).init), format, seed, arguments, **facts), design


def continued(model: FittedModel, arguments: Arguments) -> tuple[FittedModel, Design]:
    """Return a model with the present arguments' learning rate, and its design, whose units are not needed again.

    Raises:
        ValueError: The arguments describe another model.
    """
    check_structure(arguments, model.arguments)
    if arguments.learning_rate is not None:
        model = replace(model, record=replace(model.record, learning_rate=arguments.learning_rate))
    return model, design_for(arguments, model.likelihood, None, model.format, model.latent_dim, model.given)


def _numbered(trained: Trained, history):
    samples = history[-1]["samples"] if history else 0
    return [{**row, "epoch": len(history) + 1, "samples": samples + row["samples"]} for row in trained.history]
