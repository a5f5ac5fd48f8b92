"""What the arguments say about the steps of a run: the optimizer, its learning rate, and the average of parameters."""

import optax

from aevb.learners import OPTIMIZERS, adagrad
from aevb.learners.optimizers import DEFAULT_LEARNING_RATES
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
