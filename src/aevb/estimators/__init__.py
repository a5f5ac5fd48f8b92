"""Estimators of the lower bound: functions of one datapoint and its noise, in nats, to be maximized.

Each has the signature ``estimator(generative, recognition, x, epsilon)`` with ``epsilon`` of shape (L, ...): L draws of
the noise that the recognition model needs. `vmap` extends it to a batch, and `minibatch` to a whole data set.
"""

from collections.abc import Callable

from aevb.estimators.full_vb import full_vb_a, full_vb_b
from aevb.estimators.importance import importance, importance_dreg, importance_terms
from aevb.estimators.kl import analytic_kl, has_analytic_kl, kl
from aevb.estimators.marginal_label import UNWEIGHTED, LabelWeights, beside_label, marginal_label
from aevb.estimators.minibatch import minibatch
from aevb.estimators.score_function import score_function, score_function_terms
from aevb.estimators.sgvb import sgvb_a, sgvb_b, sgvb_stl, terms_a, terms_b, terms_stl
from aevb.estimators.terms import Terms

ESTIMATORS = {
    "sgvb-b": sgvb_b,
    "sgvb-a": sgvb_a,
    "sgvb-stl": sgvb_stl,
    "score-function": score_function,
    "importance": importance,
    "importance-dreg": importance_dreg,
}
_TERMS: dict[Callable, Callable[..., Terms]] = {
    sgvb_b: terms_b,
    sgvb_a: terms_a,
    sgvb_stl: terms_stl,
    score_function: score_function_terms,
}
_WEIGHTED = (importance, importance_dreg)


def with_terms(estimator: Callable) -> Callable[..., Terms]:
    """Return the same estimator with the two terms of the bound as well, if the bound is a difference of two terms."""
    if hasattr(estimator, "summed"):  # over labels, which gives terms already
        return estimator
    return _TERMS.get(estimator, lambda *arguments: Terms(estimator(*arguments)))


def name_of(estimator: Callable) -> str:
    """Return the name of an estimator in ``ESTIMATORS``, or of the one that is summed over labels."""
    estimator = getattr(estimator, "summed", estimator)
    return next(name for name, known in ESTIMATORS.items() if estimator in (known, _TERMS.get(known)))


def is_weighted(estimator: Callable | str) -> bool:
    """Whether an estimator, or the one of this name, is of an importance-weighted bound, which changes with L."""
    return (ESTIMATORS.get(estimator) if isinstance(estimator, str) else estimator) in _WEIGHTED


__all__ = [
    "ESTIMATORS",
    "UNWEIGHTED",
    "LabelWeights",
    "Terms",
    "analytic_kl",
    "beside_label",
    "full_vb_a",
    "full_vb_b",
    "has_analytic_kl",
    "importance",
    "importance_dreg",
    "importance_terms",
    "is_weighted",
    "kl",
    "marginal_label",
    "minibatch",
    "name_of",
    "score_function",
    "sgvb_a",
    "sgvb_b",
    "sgvb_stl",
    "with_terms",
]
