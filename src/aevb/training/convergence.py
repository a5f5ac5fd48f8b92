"""When to stop: convergence of a held-out bound."""

from typing import Any


class Convergence:
    """Watches a held-out bound and keeps the best state seen.

    Args:
        patience: Epochs without a better bound until convergence is declared; None to only keep the best.
    """

    def __init__(self, patience: int | None):
        self.patience = patience
        self.best_bound = -float("inf")
        self.best_state: Any = None
        self._epochs_since = 0

    def observe(self, bound: float, state) -> None:
        """Take note of an epoch's bound."""
        if bound > self.best_bound:
            self.best_bound, self.best_state, self._epochs_since = bound, state, 0
        else:
            self._epochs_since += 1

    @property
    def is_reached(self) -> bool:
        """Whether learning has converged."""
        return self.patience is not None and self._epochs_since >= self.patience
