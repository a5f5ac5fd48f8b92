"""Importance weights of draws from a posterior over a model's variables, using all data."""

from typing import Any

import jax
import numpy as np
from jax import Array, lax

from aevb.models.compilation import compiled

DRAWS_AT_ONCE = 50
ROWS_AT_ONCE = 1000
NUM_FIRST_DRAWS = 16


def log_weights_of(learner, models: tuple, data: Any, key: Array, num_draws: int) -> tuple[Any, np.ndarray]:
    """Draw from a posterior, and return log p(X, v) - log q(v) for each draw.

    Local variables are drawn too, once for each draw of the global ones, and are included in the weight. The sums over
    datapoints are in double precision.

    Args:
        learner: The :class:`~aevb.learners.posterior.PosteriorLearner` of the model.
        models: Posterior, and local posterior or None.
        data: All the data.
        key: Random key.
        num_draws: S.

    Returns:
        The variables with leading axis S, and the log weights, (S,).
    """
    points, variables = _draw(models, key, num_draws=num_draws)
    log_weights = np.array(_log_ratios(models, points, data, learner=learner), np.float64)  # a copy to add to
    if learner.log_joint.log_likelihood is not None:
        for start in range(0, learner.num_rows, ROWS_AT_ONCE):
            block, rows, block_key = _block(data, start, learner.num_rows, key)
            bounds = _bounds(models, points, block, rows, block_key, learner=learner)
            # Each block is a minibatch that estimates the whole; weighted by their sizes, the estimates sum to it.
            log_weights += len(rows) / learner.num_rows * np.asarray(bounds, np.float64)
    return jax.tree.map(np.asarray, variables), log_weights


def check_start(learner, models: tuple, data: Any, key: Array) -> None:
    """Raise an error if the density is not finite at the start of training, and name the term and the place."""
    variables, log_weights = log_weights_of(learner, models, data, key, NUM_FIRST_DRAWS)
    bad = np.flatnonzero(~np.isfinite(log_weights))
    if not len(bad):
        return
    where = jax.tree.map(lambda draws: draws[bad[0]], variables)
    what = _first_bad_term(learner, where, data) or _first_bad_row(learner, models, data, key, bad[0])
    raise ValueError(
        f"{what} at the start, at the variables {_shown(where)}. Training needs a finite value there: look for NaN in "
        "the data or a logarithm or root of a negative number, give the variables their supports "
        "(constraints.positive), or start from your own posterior closer to the data."
    )


def _first_bad_term(learner, variables, data):
    """Return what is wrong with the term that does not depend on single datapoints; None if nothing is."""
    name = learner.log_joint.name_of_first
    try:
        value = learner.log_joint.of_variables(variables, data)
    except ValueError as error:  # from a distribution that checks its parameters
        return f"{name}: fails ({error})"
    return None if np.isfinite(value) else f"{name}: is {value}"


def _first_bad_row(learner, models, data, key, number):
    points, _ = _draw(models, key, num_draws=NUM_FIRST_DRAWS)
    point = jax.tree.map(lambda array: array[number : number + 1], points)
    for start in range(0, learner.num_rows, ROWS_AT_ONCE):
        block, rows, block_key = _block(data, start, learner.num_rows, key)
        for i, row in enumerate(np.asarray(rows)):
            one = jax.tree.map(lambda array, i=i: array[i : i + 1], block)
            value = _bounds(models, point, one, rows[i : i + 1], block_key, learner=learner)
            if not np.isfinite(value).all():
                return f"log_likelihood: is {value[0]} for datapoint {row}"
    return "log_joint: is not finite when summed"


def _block(data, start, num_rows, key):
    stop = min(start + ROWS_AT_ONCE, num_rows)
    block = jax.tree.map(lambda array: np.asarray(array)[start:stop], data)  # JAX would compile the slice
    return block, np.arange(start, stop), jax.random.fold_in(key, start)


def _shown(variables):
    if isinstance(variables, dict):
        return ", ".join(f"{name}={np.array2string(value, precision=3)}" for name, value in variables.items())
    return np.array2string(variables, precision=3)


@compiled("num_draws")
def _draw(models, key, *, num_draws):
    posterior, _ = models
    points = posterior.transform(posterior.draw_noise(key, (num_draws,)))
    return points, jax.vmap(lambda point: posterior.read(point)[0])(points)


@compiled("learner")
def _log_ratios(models, points, data, *, learner):
    return lax.map(lambda point: learner.log_ratio(models, point, data), points, batch_size=DRAWS_AT_ONCE)


@compiled("learner")
def _bounds(models, points, block, rows, key, *, learner):
    """Return the bound on all data at each point, estimated from these rows."""
    _, local = models

    def one_point(point_and_key):
        point, key = point_and_key
        epsilon = None
        if local is not None:
            keys = jax.random.split(key, len(rows))
            epsilon = jax.vmap(lambda x, row, key: local.at(x, row).draw_noise(key))(block, rows, keys)
        return learner.bound_of_data(models, point, block, rows, epsilon)

    keys = jax.random.split(key, len(jax.tree.leaves(points)[0]))
    return lax.map(one_point, (points, keys), batch_size=DRAWS_AT_ONCE)
