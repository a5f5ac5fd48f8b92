"""From the data that an estimator has read to a fitted model: what `fit` of all estimators has in common."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from jax import Array

from aevb.callbacks import NO_CALLBACKS, Callbacks
from aevb.data.frames import TableFormat
from aevb.data.image_arrays import augmented
from aevb.data.training_data import TrainingData
from aevb.estimators import LabelWeights
from aevb.fitted import FittedModel
from aevb.fitted.model import seed_of
from aevb.learners import learner_kind
from aevb.parallel import group
from aevb.programs import keep_programs
from aevb.settings import Arguments
from aevb.training import Resident, Trained
from aevb.vae.checkpoints import checkpoints_for, resumed
from aevb.vae.checks import check_checkpoint, check_feed, check_held_out
from aevb.vae.fitting import Fitting, Keys, format_of, show_columns

NAME_ITS_KIND = (
    'To learn one, give its kind: likelihood={"name": "categorical"}. With the kind "drop" it is left out without this '
    "warning."
)
CONVERT_IT = "To learn from one, convert it to numbers or to labels that repeat; drop it to avoid this warning."


class Task(NamedTuple):
    """What is to be learned."""

    data: TrainingData
    given: Any = None  # the format of what rows are conditioned on; None if they are not
    weights: LabelWeights | None = None  # of labels that may be unknown
    columns: TableFormat | None = None  # of X, if it is a table


class Watch(NamedTuple):
    """Where a run is saved, how often, and what is called during it."""

    folder: Any = None
    seconds: float = 60.0
    callbacks: Callbacks = NO_CALLBACKS

    @classmethod
    def of(cls, folder: Any, seconds: Any, callbacks: Any) -> "Watch":
        """Return what a user asked for, after checking it; of several processes the first one calls the callbacks."""
        check_checkpoint(folder, seconds)
        checked = Callbacks(callbacks)
        return cls(folder, seconds, checked if group().is_first else NO_CALLBACKS)


class Learned(NamedTuple):
    """What `fit` keeps."""

    model: FittedModel
    trained: Trained
    data: TrainingData

    @property
    def error(self) -> BaseException | None:
        """The error that ended the run, if one did."""
        error = self.trained.error
        if error is not None:
            error.add_note("The model keeps what it learned before the error.")
        return error


def learn(estimator: Any, arguments: Arguments, task: Callable[[Callable[[], Array]], Task], watch: Watch) -> Learned:
    """Learn a model.

    Args:
        estimator: The estimator, which has read its data.
        arguments: Its arguments, or those of this run.
        task: Function of the one that returns the key for choosing held-out rows; it returns what is to be learned.
            Making a key compiles a program, so it is made only after the data have been checked.
        watch: Where the run is saved, and what is called during it.

    Raises:
        KeyboardInterrupt: It was interrupted before there was anything to keep.
    """
    keep_programs()
    seed = cache(lambda: seed_of(arguments.random_state))
    keys = cache(lambda: Keys.of(seed()))
    data, given, weights, columns = task(lambda: keys().rows)
    data = data._replace(feed=augmented(estimator, data.feed, arguments.option("augment", None)))
    check_feed(
        learner_kind(arguments.learner, arguments.amortized), data.feed.num_rows, isinstance(data.feed, Resident)
    )
    check_held_out(arguments, data.feed)
    checkpoints = checkpoints_for(arguments, data.feed, watch.folder, watch.seconds)
    arguments, progress = resumed(arguments, checkpoints), estimator._shows_progress
    if columns is not None and (columns.container != "numpy" or columns is data.table or columns.left_out):
        show_columns(columns, progress, NAME_ITS_KIND if columns is data.table else CONVERT_IT)
    format = data.table or format_of(estimator, data.reading, data.units)
    fitting = Fitting(arguments, data, format, seed(), keys(), progress, given, weights)
    with watch.callbacks.about(type(estimator).__name__, vars(arguments)) as callbacks:
        model, trained = replace(fitting, callbacks=callbacks).run(checkpoints)
    return Learned(model, trained, data)
