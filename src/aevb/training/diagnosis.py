"""Find what went wrong first when a number in training becomes NaN or infinite."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from aevb.models.parameters import named_leaves
from aevb.training.chunk_steps import chunk_steps
from aevb.training.reports import entries
from aevb.training.sharded import is_finite

_TERMS = {  # in the order in which they are computed
    "posterior": "the encoder's q(z|x)",
    "reconstruction": "the reconstruction term, log p(x|z)",
    "kl_divergence": "the KL divergence of q(z|x) from the prior",
    "log_joint": "log p(x, z) at the samples",
    "parameter_prior": "the prior on the parameters",
}


class DivergedError(FloatingPointError):
    """A number in training became NaN or infinite.

    Args:
        step: Step of the run, from 0.
        what: Which number, in words.
        rows: Indices of the training rows in that step, if known.
        of: The data that these indices refer to.
    """

    def __init__(self, step: int, what: str, rows: np.ndarray | None = None, of: str = "the data"):
        self.step, self.what, self.rows = step, what, rows
        super().__init__(f"{what} at step {step}{_in_words(rows, of)}.")


def check_finite(report, state, first_step: int) -> None:
    """Raise an error if a number in a chunk's report, or in the state after it, is NaN or infinite."""
    values = np.asarray(report[0])
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        name = report._fields[0].replace("_", " ")
        raise DivergedError(first_step + int(bad[0]), f"The {name} became {values[bad[0]]}")
    if (what := _bad_array(state)) is not None:
        raise DivergedError(first_step + len(values) - 1, what)


def first_bad(arrays) -> str | None:
    """Return the name of the first array in a pytree that contains NaN or infinity."""
    for name, leaf in named_leaves(arrays):
        if jnp.issubdtype(leaf.dtype, jnp.inexact) and not is_finite(leaf):
            return name
    return None


def diagnose(error: DivergedError, learner, state, chunk, noise_key, first_step: int) -> DivergedError:
    """Repeat a chunk step by step, and return an error that names the first number that became NaN or infinite.

    Args:
        error: The error found after the chunk; it is returned if no single step fails.
        learner: The learner that failed.
        state: The state before the chunk.
        chunk: The chunk in which it failed.
        noise_key: Noise key of the run.
        first_step: First step of the chunk.
    """
    run, data = partial(_one_step, learner=learner, plan=chunk.plan), (chunk.source, chunk.rows, chunk.order)
    for number in range(chunk.plan.num_steps):
        after, report, rows = run(state, data, noise_key, chunk.number, number)
        reported = entries(report)
        bad_array = _bad_array(after)
        if bad_array is not None or not np.isfinite(list(reported.values())).all():
            rows = np.asarray(rows)
            terms = _terms(learner, state, chunk.source, rows)
            what = _bad_term(terms | reported) or bad_array or error.what
            if names := getattr(learner, "bad_variables", lambda state: [])(after):
                what = "The gradient became infinite or nan" if what == bad_array else what
                what += f", because of the variable {' or '.join(map(repr, names))},"
            rows = rows[_are_bad(terms, rows)]
            numbers, of = chunk.names
            return DivergedError(first_step + number, what, rows if numbers is None else numbers[rows], of)
        state = after
    return error


@partial(jax.jit, static_argnames=("learner", "plan"))
def _one_step(state, data, noise_key, chunk_number, number, *, learner, plan):
    """Do one step of a chunk; return the state after it, its report, and the indices of its rows."""
    source, rows, order = data
    inputs, step = chunk_steps(state, source, rows, order, noise_key, chunk_number, learner=learner, plan=plan)
    here = jax.tree.map(lambda leaf: leaf[number], inputs)
    return *step(state, here), rows[here[0]]


def _terms(learner, state, source, rows):
    """Return the terms that a step computes, with new draws: for each of these rows, and for the parameters' prior."""
    from aevb.estimators import sgvb_a
    from aevb.training.evaluation import bound_terms, rowwise

    generative, recognition = learner.models(state)
    terms = {"parameter_prior": learner.log_parameter_prior(state)}
    if learner.row_bound is None:
        return terms
    data = source, rows, jax.random.key(0)
    bound = bound_terms(generative, recognition, *data, learner.row_bound.estimator)
    # For a bound without these terms, use those of estimator A.
    parts = bound if bound.reconstruction is not None else bound_terms(generative, recognition, *data, sgvb_a)
    terms |= entries(parts) | {"lower_bound": bound.lower_bound}
    if learner.needs_encoder:  # otherwise q(z) is found by gradient ascent
        terms["posterior"] = rowwise(_size_of_draw, recognition, *data)
    return terms


def _size_of_draw(recognition, x, key):
    """Return the largest number in a draw from q(z|x); NaN if q has NaN parameters, even if the draw is finite."""
    q = recognition(x)
    leaves = [leaf for leaf in jax.tree.leaves(q) if eqx.is_inexact_array(leaf)]
    is_nan = jnp.array([jnp.isnan(leaf).any() for leaf in leaves]).any()
    return jnp.where(is_nan, jnp.nan, jnp.max(jnp.abs(ravel_pytree(q.sample(key))[0])))


def _bad_term(values):
    """Return the name and value of the first term that is not finite; a sum comes after its parts."""
    for name in (*_TERMS, *(name for name in values if name not in _TERMS)):
        value = np.asarray(values.get(name, 0.0))
        if not np.isfinite(value).all():
            words = _TERMS.get(name, f"the {name.replace('_', ' ')}")
            return f"{words[0].upper()}{words[1:]} became {value[~np.isfinite(value)][0]}"
    return None


def _bad_array(state):
    """Return the name of the first array of the state that is not finite: a parameter, or the optimizer's state.

    An infinite number in the optimizer's state would make the next update zero or infinite.
    """
    changing = {"The gradient of ": state.parameters, "The optimizer's state ": getattr(state, "optimizer_state", ())}
    changing["The learner's memory "] = getattr(state, "memory", ())
    for words, arrays in changing.items():
        if (name := first_bad(arrays)) is not None:
            for place, model in (("[0].", "generative."), ("[1].", "recognition.")):
                if name.startswith(place) and arrays is state.parameters:
                    name = name.replace(place, model, 1)
            return f"{words}{name} became infinite or nan"
    return None


def _are_bad(terms, rows):
    """Return which rows of the step have a bound that is not finite; all of them if there are none."""
    bad = ~np.isfinite(terms.get("lower_bound", np.zeros(len(rows))))
    return bad if bad.any() else np.ones(len(rows), bool)


def _in_words(rows, of):
    if rows is None or not len(rows) or not of:
        return ""
    shown = ", ".join(str(row) for row in rows[:5])
    return (
        f", with row {shown} of {of}"
        if len(rows) == 1
        else f", with rows {shown}{', ...' if len(rows) > 5 else ''} of {of}"
    )
