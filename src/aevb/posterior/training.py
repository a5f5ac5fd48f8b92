"""Fit any posterior by an optimizer: the user's own distributions, local variables, encoders."""

import warnings
from typing import Any

import jax

from aevb.inference.fitted import FittedPosterior
from aevb.inference.log_weights import check_start
from aevb.learners.posterior import PosteriorLearner
from aevb.models import LogJoint, Posterior, check_log_joint, split, unused_variables
from aevb.posterior.judgement import judge
from aevb.posterior.optimization import Optimization
from aevb.training import Resident, train_on
from aevb.training.feed import RowNames
from aevb.training.records import Records

NUM_SAMPLES = 8


def fit_by_optimizer(
    model: LogJoint, q: Posterior, local, data, num_data: int, num_rows: int, how: Optimization, name
) -> FittedPosterior:
    """Maximize the bound by stochastic gradient ascent from the initial q.

    Args:
        model: The log joint.
        q: The initial posterior of the variables.
        local: That of the local variables, or None.
        data: All the data.
        num_data: N.
        num_rows: Rows of the data.
        how: The optimizer and its steps.
        name: The family's name or the user's posterior, which determines the default learning rate.
    """
    schedule = how.schedule(num_rows)
    source: Any = Records(data, whole=schedule.is_whole)
    check_log_joint(model, q, local, source.arrays)
    if unused := unused_variables(model, q, local, source.arrays):
        names = ", ".join(map(repr, unused))
        warnings.warn(f"variables: the log joint never reads {names}. Leave it out, or fix the model.", stacklevel=3)
    learner = PosteriorLearner(
        skeleton=split((q, local)).skeleton,
        log_joint=model,
        num_data=num_data,
        num_rows=num_rows,
        whole=schedule.is_whole,
        num_samples=how.num_samples or NUM_SAMPLES,
        optimizer=how.transformation(schedule.max_epochs * schedule.steps_per_epoch),
    )
    run_key, draws_key = jax.random.split(jax.random.key(how.random_state))
    check_start(learner, (q, local), source.arrays, draws_key)
    state = learner.init((q, local), how.first_rate(name), run_key)
    names = RowNames(of="" if schedule.is_whole else "the data")
    feed = Resident(source, schedule.rows, schedule.batch_size, names=names)
    trained = train_on(learner, state, feed, key=run_key, max_epochs=schedule.max_epochs, progress=how.progress)
    if trained.stopped_because == "interrupted" and not trained.history:
        raise KeyboardInterrupt  # there is no result to return
    return judge(learner, trained, source.arrays, schedule.steps_per_epoch, draws_key, how.random_state)
