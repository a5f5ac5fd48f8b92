"""Estimators of the lower bound: functions of one datapoint and its noise, in nats, to be maximized.

Each has the signature ``estimator(generative, recognition, x, epsilon)`` with ``epsilon`` of shape (L, ...): L draws of
the noise that the recognition model needs. `vmap` makes the batch, and `minibatch` the estimate for a whole data set.
"""

from aevb.estimators.full_vb import full_vb_a, full_vb_b
from aevb.estimators.importance import importance
from aevb.estimators.kl import analytic_kl, has_analytic_kl
from aevb.estimators.minibatch import minibatch
from aevb.estimators.score_function import score_function
from aevb.estimators.sgvb import sgvb_a, sgvb_b

ESTIMATORS = {"sgvb-b": sgvb_b, "sgvb-a": sgvb_a, "score-function": score_function, "importance": importance}

__all__ = [
    "ESTIMATORS",
    "analytic_kl",
    "full_vb_a",
    "full_vb_b",
    "has_analytic_kl",
    "importance",
    "minibatch",
    "score_function",
    "sgvb_a",
    "sgvb_b",
]
