"""What went wrong first, when a number in training is none."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from aevb.models.parameters import named_leaves
from aevb.training.chunk_steps import chunk_steps

_TERMS = {  # in the order in which they are computed
    "posterior": "the encoder's q(z|x)",
    "reconstruction": "the reconstruction term, log p(x|z)",
    "kl_divergence": "the KL divergence of q(z|x) from the prior",
    "log_joint": "log p(x, z) at the samples",
    "parameter_prior": "the prior on the parameters",
}


class DivergedError(FloatingPointError):
    """A number in training became infinite or none.

    Args:
        step: Of the run, from 0.
        what: Which number, in words.
        rows: Numbers of the training rows of that step, if they are known.
        of: What these rows are counted in.
    """

    def __init__(self, step: int, what: str, rows: np.ndarray | None = None, of: str = "the data"):
        self.step, self.what, self.rows = step, what, rows
        super().__init__(f"{what} at step {step}{_in_words(rows, of)}.")


def check_finite(report, state, first_step: int) -> None:
    """Raise if a number that a chunk reported, or one of the state after it, is none."""
    values = np.asarray(report[0])
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        name = report._fields[0].replace("_", " ")
        raise DivergedError(first_step + int(bad[0]), f"The {name} became {values[bad[0]]}")
    if (what := _bad_array(state)) is not None:
        raise DivergedError(first_step + len(values) - 1, what)


def first_bad(arrays) -> str | None:
    """Return the name of the first array of a pytree that is not finite everywhere."""
    for name, leaf in named_leaves(arrays):
        if jnp.issubdtype(leaf.dtype, jnp.inexact) and not np.isfinite(leaf).all():
            return name
    return None


def diagnose(error: DivergedError, learner, state, chunk, noise_key, first_step: int) -> DivergedError:
    """Go through a chunk again, a step at a time, and return an error that names the first number that went bad.

    Args:
        error: What was noticed after the chunk; it is given back if the steps, one by one, do not fail.
        learner: That failed.
        state: Before the chunk.
        chunk: In which it failed.
        noise_key: Of the run.
        first_step: Of the chunk.
    """
    run = partial(_one_step, learner=learner, plan=chunk.plan)
    for number in range(chunk.plan.num_steps):
        after, report, rows = run(state, chunk.source, chunk.rows, chunk.order, noise_key, chunk.number, number)
        reported = {name: value for name, value in report._asdict().items() if value is not None}
        bad_array = _bad_array(after)
        if bad_array is not None or not np.isfinite(list(reported.values())).all():
            rows = np.asarray(rows)
            terms = _terms(learner, state, chunk.source, rows)
            what = _bad_term(terms | reported) or bad_array or error.what
            rows = rows[_are_bad(terms, rows)]
            numbers, of = chunk.names
            return DivergedError(first_step + number, what, rows if numbers is None else numbers[rows], of)
        state = after
    return error


@partial(jax.jit, static_argnames=("learner", "plan"))
def _one_step(state, source, rows, order, noise_key, chunk_number, number, *, learner, plan):
    """Do one step of a chunk; return the state after it, its report, and the numbers of its rows."""
    inputs, step = chunk_steps(state, source, rows, order, noise_key, chunk_number, learner=learner, plan=plan)
    here = jax.tree.map(lambda leaf: leaf[number], inputs)
    return *step(state, here), rows[here[0]]


def _terms(learner, state, source, rows):
    """Return what a step computes, by draws of its own: of each of these rows, and of the parameters' prior."""
    from aevb.estimators import sgvb_a
    from aevb.training.evaluation import bound_terms, rowwise

    generative, recognition = learner.models(state)
    terms = {"parameter_prior": learner.log_parameter_prior(state)}
    if learner.row_bound is None:
        return terms
    data = source, rows, jax.random.key(0)
    bound = bound_terms(generative, recognition, *data, learner.row_bound.estimator)
    # Of a bound that has no such terms, they are those of estimator A.
    parts = bound if bound.reconstruction is not None else bound_terms(generative, recognition, *data, sgvb_a)
    terms |= parts._asdict() | {"lower_bound": bound.lower_bound}
    if learner.needs_encoder:  # else q(z) is found by ascent
        terms["posterior"] = rowwise(_size_of_draw, recognition, *data)
    return terms


def _size_of_draw(recognition, x, key):
    """Return the largest number of a draw from q(z|x); nan if q is made of such, even where a draw would not tell."""
    q = recognition(x)
    leaves = [leaf for leaf in jax.tree.leaves(q) if eqx.is_inexact_array(leaf)]
    is_nan = jnp.array([jnp.isnan(leaf).any() for leaf in leaves]).any()
    return jnp.where(is_nan, jnp.nan, jnp.max(jnp.abs(ravel_pytree(q.sample(key))[0])))


def _bad_term(values):
    """Name the first term that is not finite, and what it is; a whole comes after its parts."""
    for name in (*_TERMS, *(name for name in values if name not in _TERMS)):
        value = np.asarray(values.get(name, 0.0))
        if not np.isfinite(value).all():
            words = _TERMS.get(name, f"the {name.replace('_', ' ')}")
            return f"{words[0].upper()}{words[1:]} became {value[~np.isfinite(value)][0]}"
    return None


def _bad_array(state):
    """Name the first array that a step changes which is not finite: a layer, by its gradient, or an optimizer's memory.

    What is infinite in an optimizer's memory makes the next step nothing or everything.
    """
    changing = {"The gradient of ": state.parameters, "The optimizer's memory ": getattr(state, "optimizer_state", ())}
    changing["The learner's memory "] = getattr(state, "memory", ())
    for words, arrays in changing.items():
        if (name := first_bad(arrays)) is not None:
            for place, model in (("[0].", "generative."), ("[1].", "recognition.")):
                if name.startswith(place) and arrays is state.parameters:
                    name = name.replace(place, model, 1)
            return f"{words}{name} became infinite or nan"
    return None


def _are_bad(terms, rows):
    """Return which rows of the step have a bad bound of their own; all of them if that cannot be told."""
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
