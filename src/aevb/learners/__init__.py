"""Learners: `init` makes a state, `step` improves it with one minibatch and its noise; both are pure."""

from aevb.learners.aevb import AEVB
from aevb.learners.ascent import Learner, LearnerState, StepInfo
from aevb.learners.full_vb import FullVB
from aevb.learners.mcem import MCEM
from aevb.learners.optimizers import OPTIMIZERS, adagrad
from aevb.learners.unamortized import Unamortized
from aevb.learners.wake_sleep import WakeSleep

LEARNERS = {"aevb": AEVB, "wake-sleep": WakeSleep, "mcem": MCEM, "full-vb": FullVB}

__all__ = [
    "AEVB",
    "LEARNERS",
    "MCEM",
    "OPTIMIZERS",
    "FullVB",
    "Learner",
    "LearnerState",
    "StepInfo",
    "Unamortized",
    "WakeSleep",
    "adagrad",
]
