"""Learners: `init` makes a state, `step` improves it with one minibatch and its noise; both are pure."""

from aevb.learners.aevb import AEVB, AEVBState, StepInfo
from aevb.learners.optimizers import OPTIMIZERS, adagrad

__all__ = ["AEVB", "OPTIMIZERS", "AEVBState", "StepInfo", "adagrad"]
