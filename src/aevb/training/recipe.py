"""What a run with default settings does after training: detect a collapsed model, and retrain on all rows."""

import jax
import numpy as np
from jax import Array

from aevb.inference.diagnostics import active_codes
from aevb.training.evaluation import rowwise
from aevb.training.feed import Resident
from aevb.training.position import REDUCTION
from aevb.training.result import Trained
from aevb.training.run import train_on

FEW_NATS = 0.1  # of KL divergence: with more, the codes carry information, and no further check is needed
MAX_JUDGED = 1000  # rows
COLLAPSED = (
    "No latent variable is active: the codes do not depend on the data, and the model is no better than one with "
    "independent columns. Training again, with a KL term that grows slowly, did not help. Either the columns are "
    "independent, or there is too little data; or try another latent_dim, hidden or learning_rate."
)


def is_collapsed(learner, trained: Trained, feed: Resident) -> bool:
    """Whether no latent variable is active, by :func:`aevb.inference.diagnostics.active_codes`."""
    if not trained.history:
        return False
    judged = [row for row in trained.history if row.get("validation_lower_bound", -np.inf) == trained.best_bound]
    row = (judged or trained.history)[-1]
    divergence = row.get("validation_kl_divergence", row.get("kl_divergence"))
    if divergence is not None and not divergence < FEW_NATS:
        return False
    return num_active(learner, trained.state, feed) == 0


def num_active(learner, state, feed: Resident) -> int:
    """Return how many latent variables are active, by :func:`aevb.inference.diagnostics.active_codes`."""
    generative, recognition = learner.models(state)
    codes = rowwise(_posterior_mean, recognition, feed.source, feed.train_rows[:MAX_JUDGED])
    return active_codes(codes, generative.latent_distribution()).num_active


def _posterior_mean(recognition, x):
    return recognition(x).mean


def relearn(learner, state, feed: Resident, key: Array, path: tuple[int, ...]) -> Trained:
    """Train on all rows, including the held-out ones, for as long as these indicated.

    If it is cut short, `stopped_because` of the result is neither ``"max_epochs"`` nor ``"converged"``.

    Args:
        learner: The learner, with N the number of all rows.
        state: The initial state, with the first learning rate.
        feed: All rows.
        key: Random key.
        path: Rows of the history for each learning rate, see :class:`~aevb.training.position.Position`.
    """
    trained, learning_rate = Trained(state), state.learning_rate
    for number, rows in enumerate(path):
        if rows:
            state = trained.state._replace(learning_rate=learning_rate * REDUCTION**number)
            part = jax.random.fold_in(key, number)
            trained = train_on(learner, state, feed, key=part, max_epochs=rows * feed.epochs_per_row)
        if trained.stopped_because not in (feed.end, "converged"):
            break
    return trained
