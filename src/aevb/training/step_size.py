"""Choosing the Adagrad step size by the first iterations on the training set.

Paper: §5.
"""

import jax
import numpy as np
from jax import Array

from aevb.arrays import checksum
from aevb.parallel import group
from aevb.training.diagnosis import first_bad
from aevb.training.feed import ChunkPlan, shuffle
from aevb.training.loop import copy_state, run_steps
from aevb.training.over_devices import over_devices
from aevb.training.source import Source

ADAGRAD_STEP_SIZES = (0.01, 0.02, 0.1)


def choose_step_size(
    learner,
    state,
    source: Source,
    train_rows: np.ndarray,
    *,
    key: Array,
    batch_size: int,
    weights: np.ndarray | None = None,
    candidates=ADAGRAD_STEP_SIZES,
) -> float:
    """Return the candidate with the best bound after the first chunk of steps.

    Each candidate starts from the same state and sees the same data and noise. A candidate that diverges, as 0.1 can at
    the start, loses; the given state is not changed.

    Args:
        learner: See :mod:`aevb.learners`.
        state: The initial state for all candidates.
        source: The data.
        train_rows: Indices of the training rows.
        key: Random key of the run.
        batch_size: M.
        weights: Their weights; None if they are equal.
        candidates: Step sizes to try.

    Raises:
        FloatingPointError: All of them diverged.

    Paper: §5.
    """
    group().verify(lambda: {"the start of the parameters": checksum(jax.tree.leaves(state.parameters))})
    learner, plan = over_devices(learner), ChunkPlan.of(len(train_rows), batch_size)
    order_key, noise_key = jax.random.split(key)
    rows, order = jax.numpy.asarray(train_rows), shuffle(order_key, 0, len(train_rows), weights=weights)
    scores, name = {}, ""
    for step_size in candidates:
        trial = copy_state(state)._replace(learning_rate=jax.numpy.asarray(step_size))
        end, info = run_steps(trial, source, rows, order, noise_key, 0, learner=learner, plan=plan)
        bounds = np.asarray(info[0])  # the lower bound, or the learner's own objective
        name = info._fields[0].replace("_", " ")
        last = bounds[-max(len(bounds) // 4, 1) :]
        is_finite = np.isfinite(bounds).all() and first_bad(end.parameters) is None
        scores[step_size] = float(np.mean(last)) if is_finite else -np.inf
    best = max(scores, key=scores.__getitem__)
    if scores[best] == -np.inf:
        raise FloatingPointError(
            f"learning_rate: none of {candidates} kept the {name} finite. Give a smaller one, or rescale the data."
        )
    return best
