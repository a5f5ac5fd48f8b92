"""Estimators of the lower bound: functions of one datapoint and its noise, in nats, to be maximized.

Each has the signature ``estimator(generative, recognition, x, epsilon)`` with ``epsilon`` of shape (L, ...): L draws of
the noise that the recognition model needs. `vmap` makes the batch, and `minibatch` the estimate for a whole data set.
"""

from collections.abc import Callable

from aevb.estimators.full_vb import full_vb_a, full_vb_b
from aevb.estimators.importance import importance
from aevb.estimators.kl import analytic_kl, has_analytic_kl, kl
from aevb.estimators.minibatch import minibatch
from aevb.estimators.score_function import score_function, score_function_terms
from aevb.estimators.sgvb import sgvb_a, sgvb_b, terms_a, terms_b
from aevb.estimators.terms import Terms

ESTIMATORS = {"sgvb-b": sgvb_b, "sgvb-a": sgvb_a, "score-function": score_function, "importance": importance}
_TERMS: dict[Callable, Callable[..., Terms]] = {sgvb_b: terms_b, sgvb_a: terms_a, score_function: score_function_terms}


def with_terms(estimator: Callable) -> Callable[..., Terms]:
    """Return the same estimator with the bound's two terms beside it, where it is the difference of two."""
    return _TERMS.get(estimator, lambda *arguments: Terms(estimator(*arguments)))


__all__ = [
    "ESTIMATORS",
    "Terms",
    "analytic_kl",
    "full_vb_a",
    "full_vb_b",
    "has_analytic_kl",
    "importance",
    "kl",
    "minibatch",
    "score_function",
    "sgvb_a",
    "sgvb_b",
    "with_terms",
]
