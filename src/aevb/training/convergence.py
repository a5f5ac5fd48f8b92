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

    def is_reached(self, bound: float, state) -> bool:
        """Take note of an epoch's bound, and say whether learning has converged."""
        if bound > self.best_bound:
            self.best_bound, self._epochs_since = bound, 0
            self.best_state = state
        else:
            self._epochs_since += 1
        return self.patience is not None and self._epochs_since >= self.patience
