"""From sequences and arguments to a fitted model."""

import warnings
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from aevb.data.sequence_format import Encoded, SequenceFormat
from aevb.data.training_data import hold_out
from aevb.estimators import name_of
from aevb.fitted import FittedModel, TrainingRecord
from aevb.fitted.sequence_design import STEPS_OF_START, SequenceDesign, sized
from aevb.fitted.sequences import log_likelihood
from aevb.fitted.steps import initial_learning_rate, with_optimizer_state
from aevb.models import TABLE
from aevb.programs import keep_programs
from aevb.settings import Arguments
from aevb.training import Trained, choose_step_size, train_on
from aevb.training.buckets import Bucket, Bucketed, buckets_of, training_buckets
from aevb.training.budget import AUTO, Budget, budget_for
from aevb.training.checkpoint import Checkpoints
from aevb.training.evaluation import Batches, SeveralBatches
from aevb.training.progress import tell
from aevb.vae.checkpoints import checkpoints_for, notes_of
from aevb.vae.fitting import Keys
from aevb.vae.learning import Watch
from aevb.vae.structure import check_structure

BATCH_SIZES = 16, 64  # smallest and largest
JUDGED_AT_ONCE, STEPS_JUDGED_AT_ONCE = 16, 16_384  # held-out sequences, and their steps
LONG, WINDOW = 1_000, 200  # steps of a sequence that is cut, and of its windows
NUM_PARTICLES = 2_000  # to compare the model that was learned with its start
FEW_STEPS = 2_000  # of training, if nothing is held out
STEPS_OF_RECOGNITION = 1_000  # if p(x, z) remains what it was at the start
KEPT_LINEAR = (
    "The linear model that training started from describes the data better than what was learned, so it is kept. "
    "Refining q(z|x) for it ..."
)


class TrainingSequences(NamedTuple):
    """Sequences, and those that the user holds out, None for a part of the others."""

    format: SequenceFormat
    encoded: Encoded
    held_out: Encoded | None = None


def fit_sequences(
    arguments: Arguments, data: TrainingSequences, seed: int, progress: bool, watch: Watch
) -> tuple[FittedModel, Trained]:
    """Train, and return the model and what happened.

    Args:
        arguments: The arguments of the estimator.
        data: The sequences.
        seed: Of the run.
        progress: Whether to show a progress bar.
        watch: Where the run is saved, and what is called during it.

    Raises:
        KeyboardInterrupt: It was interrupted before there was anything to keep.
    """
    keep_programs()
    keys = Keys.of(seed)
    data = data._replace(encoded=_informative(data.encoded))
    arguments = sized(arguments, data.encoded, data.format.model_columns)
    feed = sequence_feed(arguments, data, keys)
    checkpoints = checkpoints_for(arguments, feed, watch.folder, watch.seconds)
    budget = _budget(arguments, feed, checkpoints)
    feed = replace(feed, epochs_per_row=budget.epochs_per_row)
    if checkpoints is not None:
        checkpoints.notes["epochs_per_row"] = budget.epochs_per_row
    design = SequenceDesign(arguments, data.format, int(arguments.latent_dim))
    rate = initial_learning_rate(arguments)
    models = design.models(keys.init, feed.first())
    learner, state = design.start(models, feed.num_data, rate, keys.learner, num_windows(feed))
    if rate is None:
        source, numbers, _ = feed.first()
        rate = choose_step_size(learner, state, source, numbers, key=keys.choice, batch_size=feed.batch_size)
        state = state._replace(learning_rate=jnp.asarray(rate))
    options: dict[str, Any] = {"max_epochs": budget.max_epochs, "patience": budget.patience}
    options |= {"progress": progress, "checkpoints": checkpoints, "callback": watch.callbacks.epoch}
    with watch.callbacks.about("SequenceVAE", vars(arguments)) as callbacks:
        callbacks.start(num_rows=feed.num_rows, max_epochs=budget.max_epochs)
        trained = train_on(learner, state, feed, key=keys.train, **options)
        callbacks.end(vars(trained))
    if trained.stopped_because == "interrupted" and not trained.history:
        raise KeyboardInterrupt
    record = TrainingRecord(
        trained.history, trained.stopped_because, None, rate / 2**trained.halvings, likelihood_reason=""
    )
    facts = {"likelihood": TABLE, "latent_dim": design.latent_dim, "record": record}
    facts["estimator"] = name_of(learner.estimator)
    model = FittedModel(*learner.models(trained.state), data.format, seed, arguments, **facts)
    if design.starts_linear and is_likelier(models[0], model, data.encoded):
        return _recognized(replace(model, generative=models[0]), trained, feed, progress)
    return model, trained


def _recognized(model, trained, feed, progress):
    """Return a model whose p(x, z) stays as it is, after learning its q(z|x), and what happened.

    What was learned of q belongs to another p(x, z), near it.
    """
    arguments = model.arguments.replaced(kl_annealing=0)
    design, keys = SequenceDesign(arguments, model.format, model.latent_dim), Keys.of(model.seed)
    start = (model.generative, model.recognition), feed.num_data, model.record.learning_rate, keys.learner
    learner, state = design.start(*start, num_windows(feed), recognition_steps=np.iinfo(np.int32).max)
    max_epochs = -(-STEPS_OF_RECOGNITION // feed.steps_per_epoch)
    tell(progress, KEPT_LINEAR)
    options = {"max_epochs": max_epochs, "progress": progress, "what": "refining q(z|x)"}
    found = train_on(learner, state, feed, key=keys.choice, **options)
    model = replace(model, recognition=learner.models(found.state)[1])
    return model, replace(trained, state=found.state)


def is_likelier(start: Any, model: FittedModel, encoded: Encoded) -> bool:
    """Return whether p(x) is larger with the linear p(x, z) from which a model started than with what it learned.

    The bound of a q that is not good enough can draw p(x, z) away from a good start. Particle filters do not depend on
    q. Of more than 20,000 steps nothing is compared.

    Args:
        start: p(x, z) at the start.
        model: The model that was learned.
        encoded: The training sequences.
    """
    if encoded.lengths.sum() > STEPS_OF_START:
        return False
    both = replace(model, generative=start), model
    before, after = (log_likelihood(one, encoded, "particle-filter", NUM_PARTICLES).values.sum() for one in both)
    return bool(before > after)


def sequence_feed(arguments: Arguments, data: TrainingSequences, keys: Keys) -> Bucketed:
    """Return sequences for training, in buckets; a part of them is held out."""
    format, encoded, judged = data
    train, held_out = np.arange(len(encoded.lengths)), None
    if judged is None:
        train, held_out = hold_out(len(encoded.lengths), arguments.validation_fraction, cache(lambda: keys.rows))
        judged = None if held_out is None else encoded.some(held_out)
    window = window_for(encoded.lengths[train], arguments.option("window", None))
    if window is None:
        size = batch_size_for(len(train), arguments.batch_size)
        buckets = [
            Bucket(format.source(encoded.some(train[numbers]), length), train[numbers])
            for length, numbers in training_buckets(encoded.lengths[train], size)
        ]
    else:
        windows = encoded.some(train).windows(window)
        size = batch_size_for(len(windows.lengths), arguments.batch_size)
        buckets = [Bucket(format.source(windows, window), np.repeat(train, -(-encoded.lengths[train] // window)))]
    if judged is None:
        return Bucketed(buckets, size)
    parts = [
        Batches(
            format.source(judged.some(numbers), length),
            np.arange(len(numbers)),
            size=min(max(STEPS_JUDGED_AT_ONCE // length, 1), JUDGED_AT_ONCE, 1 << (len(numbers) - 1).bit_length()),
        )
        for length, numbers in buckets_of(judged.lengths)
    ]
    return Bucketed(buckets, size, SeveralBatches(parts))


def window_for(lengths: np.ndarray, window: int | str | None) -> int | None:
    """Return the number of steps of the windows in which sequences are learned; None for whole sequences.

    Example:
        >>> [window_for(np.array([30, longest]), "auto") for longest in (1_000, 10_000)]
        [None, 200]
    """
    size = (WINDOW if lengths.max() > LONG else None) if window == AUTO else window
    return None if size is None or lengths.max() <= size else int(size)


def num_windows(feed: Bucketed) -> int:
    """Return the number of windows; 0 if sequences are not cut."""
    bucket = feed.buckets[0]
    return len(bucket.numbers) if "following" in bucket.source.rows.given else 0


def batch_size_for(num_sequences: int, batch_size: int | str) -> int:
    """Return M: the given value, or a tenth of the sequences, from 16 to 64, at most all of them.

    Example:
        >>> [batch_size_for(n, "auto") for n in (3, 100, 300, 10_000)]
        [3, 16, 30, 64]
    """
    fewest, most = BATCH_SIZES
    wanted = max(fewest, min(num_sequences // 10, most)) if batch_size == AUTO else int(batch_size)
    return min(wanted, num_sequences)


def _budget(arguments: Arguments, feed: Bucketed, checkpoints: Checkpoints | None) -> Budget:
    steps = feed.steps_per_epoch
    options: dict[str, Any] = {"is_judged": feed.held_out is not None, "may_repeat": True}
    options["epochs_per_row"] = notes_of(checkpoints).get("epochs_per_row")  # of a run that resumes
    budget = budget_for(steps, arguments.max_epochs, arguments.patience, **options)
    if arguments.max_epochs == AUTO and feed.held_out is None:
        budget = budget._replace(max_epochs=max(budget.max_epochs, -(-FEW_STEPS // steps)))
    return budget._replace(patience=budget.patience._replace(warm_up=arguments.kl_annealing))


def _informative(encoded: Encoded) -> Encoded:
    """Return the sequences without those in which nothing is observed, with a warning."""
    empty = np.array([np.isnan(rows).all() for rows in encoded.values])
    if empty.all():
        raise ValueError("sequences: nothing is observed in any of them. Give some values that are not NaN.")
    if empty.any():
        warnings.warn(
            f"sequences: nothing is observed in {np.count_nonzero(empty)} of {len(empty)}, the first of them sequence "
            f"{int(np.argmax(empty))} (counted from 0). They are left out of training.",
            UserWarning,
            stacklevel=5,
        )
    return encoded.some(np.flatnonzero(~empty)) if empty.any() else encoded


def learn_more(
    model: FittedModel, arguments: Arguments, encoded: Encoded, optimizer_state: Any
) -> tuple[FittedModel, Trained]:
    """Learn a batch of sequences in one pass; return the model after it, and what happened.

    Raises:
        ValueError: The arguments describe another model.
    """
    check_structure(arguments, model.arguments)
    history = model.record.history
    rate = arguments.learning_rate or model.record.learning_rate or initial_learning_rate(arguments)
    key = jax.random.fold_in(jax.random.key(model.seed), 1 + len(history))
    design = SequenceDesign(arguments, model.format, model.latent_dim)
    data = TrainingSequences(model.format, _informative(encoded))
    feed = sequence_feed(arguments.replaced(validation_fraction=0), data, Keys.of(0))
    start = (model.generative, model.recognition), None, rate, key, num_windows(feed)
    learner, state = design.start(*start, recognition_steps=0)  # which are for a linear start only
    state = with_optimizer_state(state, optimizer_state, model.arguments, arguments)
    trained = train_on(learner, state, feed, key=key, max_epochs=1)
    samples = history[-1]["samples"] if history else 0
    rows = [{**row, "epoch": len(history) + 1, "samples": samples + row["samples"]} for row in trained.history]
    record = replace(model.record, history=history + rows, stopped_because=trained.stopped_because)
    generative, recognition = learner.models(trained.state)
    return replace(model, generative=generative, recognition=recognition, record=record, arguments=arguments), trained
