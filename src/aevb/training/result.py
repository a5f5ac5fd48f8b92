"""What a run returns, and why it ended."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass
class Trained:
    """The result of training."""

    state: Any
    history: list[dict] = field(default_factory=list)
    stopped_because: str = "max_epochs"
    error: BaseException | None = None  # an error of the data or the disk after training had begun
    halvings: int = 0  # of the learning rate
    best_bound: float | None = None  # of held-out rows
    best_path: tuple[int, ...] = ()  # rows of the history up to the best state, by learning rate
    refit_epochs: int | None = None  # of the second pass, over all rows; None if there was none


class Ending(NamedTuple):
    """Why a run ended."""

    reason: str  # `stopped_because` of the result
    error: BaseException | None = None  # of the data or the disk
    can_save: bool = True

    @property
    def is_early(self) -> bool:
        """Whether the run was cut short."""
        return self.reason in ("interrupted", "failed", "diverged")
