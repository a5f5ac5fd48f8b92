"""Run a learner on data: on rows on the device, or on the chunks of a feed.

Paper: Algorithm 1.
"""

from contextlib import nullcontext
from functools import partial

import jax
import numpy as np
from jax import Array

from aevb import __version__
from aevb.arrays import checksum
from aevb.models.compilation import make_room
from aevb.models.parameters import named_leaves
from aevb.parallel import group
from aevb.training.budget import Patience
from aevb.training.checkpoint import Checkpoints
from aevb.training.feed import Feed, Resident
from aevb.training.loop import Run, Trained, Watching
from aevb.training.source import Source


def train(
    learner,
    state,
    source: Source,
    train_rows: np.ndarray,
    *,
    key: Array,
    batch_size: int,
    validation_rows: np.ndarray | None = None,
    **options,
) -> Trained:
    """Run a learner on rows on the device, until its held-out bound has converged, or for `max_epochs`.

    Args:
        learner: See :class:`aevb.learners.Learner`.
        state: The initial state; it is not changed.
        source: The data.
        train_rows: Indices of the training rows.
        key: Random key of the run.
        batch_size: M.
        validation_rows: Indices of the held-out rows, whose bound decides convergence; None for none.
        options: ``max_epochs``, which is required, ``patience``, ``checkpoints``, ``progress`` and ``callback``; see
            :func:`train_on`.

    Returns:
        The state (the best one if there are validation rows), the history (one row per epoch) and why it stopped.

    Raises:
        FloatingPointError: NaN or infinity in the first chunk; in a later one, the run ends with a warning.

    Paper: Algorithm 1.
    """
    feed = Resident(source, train_rows, batch_size, validation_rows)
    return train_on(learner, state, feed, key=key, **options)


def train_on(
    learner,
    state,
    feed: Feed,
    *,
    key: Array,
    max_epochs: int,
    patience: int | Patience | None = None,
    checkpoints: Checkpoints | None = None,
    **watching,
) -> Trained:
    """Run a learner on the chunks of a feed; otherwise like :func:`train`.

    If a number becomes NaN or infinite, the run returns to the state before that chunk, halves the learning rate and
    tries again, up to five times in all. If the data or the disk fail after training has begun, the state so far is
    returned, with the error.

    Args:
        learner: See :class:`aevb.learners.Learner`.
        state: The initial state; it is not changed.
        feed: The data.
        key: Random key of the run.
        max_epochs: Maximum number of passes through the training rows.
        patience: Rows of the history without a better held-out bound before the run ends, or a
            :class:`~aevb.training.budget.Patience`; the best state is then returned.
        checkpoints: Where the run is saved, and from where it resumes.
        watching: ``progress``, whether to show a progress bar (False by default; None to not even report an
            interruption), ``what`` is said beside it, and ``callback``, a function that is called with each epoch's row
            of the history.

    Paper: Algorithm 1.
    """
    rule = patience if isinstance(patience, Patience) else Patience(patience)
    watched = Watching(**watching)
    make_room()
    facts = partial(facts_of, learner, state, feed, key, (max_epochs, rule))
    with nullcontext() if checkpoints is None else checkpoints.locked(), group().training():
        group().verify(facts)
        run = Run(learner, state, feed, key, max_epochs, rule, watched, checkpoints)
        run.resume()
        ending = run.to_its_end()
        return run.result(run.saved(ending))


def facts_of(learner, state, feed: Feed, key: Array, limits: tuple) -> dict[str, str]:
    """Return what must be the same in all processes that train together, as texts."""
    parameters = dict(named_leaves(state.parameters))
    return {
        "version of aevb": __version__,
        "version of JAX": jax.__version__,
        "data": str(getattr(feed, "fingerprint", None)),  # of records without columns it is not known
        "learner": checksum([], str(_plain_fields(learner))),
        "order of the parameters (set PYTHONHASHSEED=0 in all processes)": " ".join(parameters),
        "start of the parameters": checksum(parameters.values()),
        "seed": checksum([jax.random.key_data(key)]),
        "limits (max_epochs, patience)": str(limits),
        "number type (jax_enable_x64)": str(jax.config.jax_enable_x64),  # pyright: ignore[reportAttributeAccessIssue]
    }


def _plain_fields(learner):
    return {name: value for name, value in vars(learner).items() if isinstance(value, str | int | float | bool | None)}
