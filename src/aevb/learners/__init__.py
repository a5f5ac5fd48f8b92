"""Learners: `init` creates a state, `step` improves it with one minibatch and its noise; both are pure functions."""

from aevb.learners.aevb import AEVB
from aevb.learners.ascent import Ascent
from aevb.learners.full_vb import FullVB
from aevb.learners.mcem import MCEM
from aevb.learners.optimizers import OPTIMIZERS, adagrad
from aevb.learners.protocol import Capabilities, Learner, LearnerState, StepInfo
from aevb.learners.unamortized import Unamortized
from aevb.learners.wake_sleep import WakeSleep

LEARNERS: dict[str, type[Ascent]] = {"aevb": AEVB, "wake-sleep": WakeSleep, "mcem": MCEM, "full-vb": FullVB}
UNAMORTIZED: dict[str, type[Ascent]] = {"aevb": Unamortized}  # the variants for `amortized=False`


def learner_kind(learner: str, amortized: bool = True) -> type[Ascent]:
    """Return the class of the learner that these two arguments of `VAE` select.

    Raises:
        ValueError: There is no such learner, or it has no variant without an encoder.
    """
    if learner not in LEARNERS:
        raise ValueError(f"learner={learner!r}: expected one of {', '.join(map(repr, LEARNERS))}.")
    if amortized:
        return LEARNERS[learner]
    if learner not in UNAMORTIZED:
        allowed = " or ".join(f"learner={name!r}" for name in UNAMORTIZED)
        raise ValueError(f"amortized=False needs {allowed}, but learner={learner!r} was given.")
    return UNAMORTIZED[learner]


__all__ = [
    "AEVB",
    "LEARNERS",
    "MCEM",
    "OPTIMIZERS",
    "UNAMORTIZED",
    "Ascent",
    "Capabilities",
    "FullVB",
    "Learner",
    "LearnerState",
    "StepInfo",
    "Unamortized",
    "WakeSleep",
    "adagrad",
    "learner_kind",
]
