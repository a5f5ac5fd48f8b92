"""What the arguments say about the steps of a run: the optimizer, its learning rate, and the average of parameters."""

from typing import Any

import jax
import numpy as np
import optax

from aevb.learners import OPTIMIZERS, adagrad
from aevb.learners.optimizers import DEFAULT_LEARNING_RATES
from aevb.learners.protocol import LearnerState
from aevb.settings import Arguments
from aevb.training.budget import AUTO

AVERAGING = 0.1  # by default: share of the steps whose parameters are averaged
AVERAGED_LEARNING_RATE = 2e-3  # of Adam


def averaging_of(arguments: Arguments, *, is_usual: bool) -> float:
    """Return the share of the steps whose parameters are averaged, as given or by default.

    Args:
        arguments: The arguments of the estimator.
        is_usual: Whether steps ascend the bound of rows of data, and nothing else.
    """
    if arguments.averaging != AUTO:
        return float(arguments.averaging)
    return AVERAGING if is_usual and arguments.optimizer == "adam" else 0.0


def initial_learning_rate(arguments: Arguments, *, is_averaged: bool = False) -> float | None:
    """Return the learning rate that is given or known by default; None if it is chosen by trial.

    Where parameters are averaged, the default is larger: the average is not as noisy as the steps.
    """
    is_named = isinstance(arguments.optimizer, str)
    default = DEFAULT_LEARNING_RATES.get(arguments.optimizer) if is_named else 1.0
    if is_averaged and arguments.optimizer == "adam":
        default = AVERAGED_LEARNING_RATE
    return default if arguments.learning_rate is None else arguments.learning_rate


def optimizer_of(arguments: Arguments) -> optax.GradientTransformation:
    """Return the optimizer that the arguments name or contain."""
    if arguments.forgetting:
        return adagrad(forgetting=float(arguments.forgetting))
    return OPTIMIZERS[arguments.optimizer] if isinstance(arguments.optimizer, str) else arguments.optimizer


def with_optimizer_state(state: LearnerState, earlier: Any, before: Arguments, now: Arguments) -> LearnerState:
    """Return the state with the optimizer's earlier one, where training goes on with the same optimizer.

    Another optimizer starts anew, also one whose state has the same form: its schedule begins.

    Args:
        state: The state of a learner that starts.
        earlier: The optimizer's state so far; None for none.
        before: The arguments of the estimator so far.
        now: Its present arguments.
    """
    is_same = before.optimizer == now.optimizer and _forms(earlier) == _forms(state.optimizer_state)
    return state._replace(optimizer_state=earlier) if is_same else state


def _forms(tree):
    return jax.tree.structure(tree), [np.shape(leaf) for leaf in jax.tree.leaves(tree)]
