"""What went wrong first, when a number in training is none."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from aevb.models.parameters import named_leaves
from aevb.training.chunk_steps import chunk_steps

_TERMS = {
    "reconstruction": "the reconstruction term, log p(x|z)",
    "kl_divergence": "the KL divergence of q(z|x) from the prior",
    "log_joint": "log p(x, z) at the samples",
}


class DivergedError(FloatingPointError):
    """A number in training became infinite or none.

    Args:
        step: Of the run, from 0.
        what: Which number, in words.
        rows: Numbers of the training rows of that step, if they are known.
    """

    def __init__(self, step: int, what: str, rows: np.ndarray | None = None):
        self.step, self.what, self.rows = step, what, rows
        super().__init__(f"{what} at step {step}{_in_words(rows)}.")


def check_finite(report, state, first_step: int) -> None:
    """Raise if a number that a chunk reported, or one of the state after it, is none.

    The optimizer's memory counts too: what is infinite there makes the next step nothing or everything.
    """
    values = np.asarray(report[0])
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        name = report._fields[0].replace("_", " ")
        raise DivergedError(first_step + int(bad[0]), f"The {name} became {values[bad[0]]}")
    changing = {"parameters": state.parameters, "optimizer": getattr(state, "optimizer_state", ())}
    changing["memory"] = getattr(state, "memory", ())
    if (name := first_bad(changing)) is not None:
        raise DivergedError(first_step + len(values) - 1, f"{name} became infinite or nan")


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
        rows = np.asarray(rows)
        if (what := _bad_term(report) or _bad_parameter(after)) is not None:
            return DivergedError(first_step + number, what, rows[_bad_rows(learner, state, chunk, rows)])
        state = after
    return error


@partial(jax.jit, static_argnames=("learner", "plan"))
def _one_step(state, source, rows, order, noise_key, chunk_number, number, *, learner, plan):
    """Do one step of a chunk; return the state after it, its report, and the numbers of its rows."""
    inputs, step = chunk_steps(state, source, rows, order, noise_key, chunk_number, learner=learner, plan=plan)
    here = jax.tree.map(lambda leaf: leaf[number], inputs)
    return *step(state, here), rows[here[0]]


def _bad_term(report):
    values = {name: value for name, value in report._asdict().items() if value is not None}
    bad = [name for name, value in values.items() if not np.isfinite(value)]
    if not bad:
        return None
    name = next((name for name in bad if name in _TERMS), bad[0])
    words = _TERMS.get(name, f"the {name.replace('_', ' ')}")
    return f"{words[0].upper()}{words[1:]} became {np.asarray(values[name])}"


def _bad_parameter(state):
    """Name the layer whose gradient, and so its weights, went bad while the objective was still a number."""
    if (name := first_bad(state.parameters)) is None:
        return None
    for place, model in (("[0].", "generative."), ("[1].", "recognition.")):
        name = name.replace(place, model, 1) if name.startswith(place) else name
    return f"The gradient of {name} became infinite or nan"


def _bad_rows(learner, state, chunk, rows):
    """Return which rows of the step have a bad bound of their own; all of them if that cannot be told."""
    from aevb.training.evaluation import bound_terms

    everything = np.ones(len(rows), bool)
    generative, recognition = learner.models(state)
    if recognition is None:
        return everything
    terms = bound_terms(generative, recognition, chunk.source, rows, jax.random.key(0), learner.estimator)
    bad = ~np.isfinite(terms.lower_bound)
    return bad if bad.any() else everything


def _in_words(rows):
    if rows is None or not len(rows):
        return ""
    shown = ", ".join(str(row) for row in rows[:5])
    return (
        f", with row {shown} of the data"
        if len(rows) == 1
        else f", with rows {shown}{', ...' if len(rows) > 5 else ''} of the data"
    )
