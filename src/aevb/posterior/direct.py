"""Fit a named family to the variables of a model: find a start, choose a family, weight its draws, refine them."""

import warnings
from typing import Any, NamedTuple

import numpy as np

from aevb.inference.fitted import FittedPosterior
from aevb.inference.log_weights import check_start
from aevb.learners.posterior import PosteriorLearner
from aevb.models import LogJoint, Posterior, Variables, check_log_joint, split, unused_variables
from aevb.posterior.chains import run_chains
from aevb.posterior.density import Density
from aevb.posterior.minibatches import Minibatches, some_rows
from aevb.posterior.optimization import Optimization
from aevb.posterior.result import build
from aevb.posterior.selection import Search
from aevb.posterior.start import find_start
from aevb.posterior.weighing import most_draws, weigh
from aevb.training.progress import ShareDone


class Problem(NamedTuple):
    """A model with its variables and data."""

    model: LogJoint
    variables: Variables
    data: Any
    num_data: int
    num_rows: int
    predict: Any = None  # see `aevb.inference.fitted.Details`


def fit_directly(problem: Problem, family: str, how: Optimization, refine: str | None) -> FittedPosterior:
    """Fit a family, or the cheapest that is good enough if it is ``"auto"``.

    Raises:
        ValueError: The log joint does not match the variables, or is not finite near the start.
    """
    density = _checked(problem)
    rng = np.random.default_rng(how.random_state)
    with ShareDone(how.progress, "fitting") as bar:
        in_batches = how.batch_size is not None and how.batch_size < problem.num_rows
        try:
            start = find_start(some_rows(density, rng) if in_batches else density, rng)
            bar.update(0.2)
            steps_on: Any = Minibatches(density, how.batch_size or 1, rng, start.q.mean) if in_batches else density
            search = Search(density, steps_on, start, rng, how.max_steps, lambda *_: bar.update(0.4))
            if family == "auto":
                trial, tried = search.choose()
            else:
                trial = search.fit(family)
                tried = [trial]
            most = most_draws(density)
            if not trial.weighted.would_be_enough(0) and trial.weighted.is_covered:
                trial.weighted = weigh(density, trial.weighted.q, rng, most=most)
        except FloatingPointError as error:
            _explain(problem, density, error, how.random_state)
            raise
        bar.update(0.7)
        chains = None
        if refine is not None:
            points = trial.weighted.points[rng.choice(len(trial.weighted.points), 8, p=trial.weighted.weights)]
            chains = run_chains(
                density, trial.weighted.q, points, how.random_state, lambda s: bar.update(0.7 + 0.3 * s)
            )
        bar.update(1.0)
    fitted = build(density, trial, tried, start, how.random_state, chains, problem.predict)
    for doubt in fitted.warnings:
        warnings.warn(doubt, UserWarning, stacklevel=4)
    return fitted


def _checked(problem: Problem) -> Density:
    """Return the log density in double precision; in single precision if the model cannot be traced in double."""
    try:
        density, unused = _traced(problem, precise=True)
    except ValueError:
        density, unused = _traced(problem, precise=False)
    if unused:
        names = ", ".join(map(repr, unused))
        warnings.warn(f"variables: the log joint never reads {names}. Leave it out, or fix the model.", stacklevel=4)
    return density


def _traced(problem, precise):
    density = Density(*problem[:4], precise=precise)
    with density.precision():
        q = Posterior.of_family("gaussian", problem.variables)
        check_log_joint(density.model, q, None, density.data)
        return density, unused_variables(density.model, q, None, density.data)


def _explain(problem, density, error, seed):
    """Raise an error that names the term, the datapoint and the variables where the log joint is not finite."""
    import jax
    import optax

    with density.precision():
        models = Posterior.of_family("gaussian", problem.variables), None
        learner = PosteriorLearner(
            split(models).skeleton, density.model, problem.num_data, problem.num_rows, True, 8, optax.identity()
        )
        check_start(learner, models, density.data, jax.random.key(seed))
