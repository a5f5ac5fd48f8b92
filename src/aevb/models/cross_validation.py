"""Choose among simple models of a small table by the log density of held-out rows."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

NUM_FOLDS = 5

Candidate = TypeVar("Candidate")


@contextmanager
def fitting_small_models() -> Iterator[None]:
    """Fit on one thread, and ignore warnings about iterations that did not converge: a model is judged as it is."""
    from threadpoolctl import threadpool_limits

    with warnings.catch_warnings(), threadpool_limits(1):  # small matrices: threads would mostly wait for each other
        warnings.simplefilter("ignore")
        yield


def best_candidate(
    candidates: Sequence[Candidate],
    rows: np.ndarray,
    score: Callable[[Candidate, np.ndarray, np.ndarray], float],
    seed: int = 0,
) -> Candidate:
    """Return the candidate with the highest average score in five-fold cross-validation.

    Args:
        candidates: The models to choose from; a single one is returned without fitting it.
        rows: (n, D).
        score: ``score(candidate, train, test)``: fits a candidate to some rows and returns the average log density of
            others.
        seed: Random seed of the folds, which are the same for all candidates.

    Example:
        >>> rows = np.random.default_rng(0).normal(3.0, 1.0, size=(50, 1))
        >>> best_candidate([0.0, 2.5, 4.0], rows, lambda mean, train, test: -np.mean((test - mean) ** 2))
        2.5
    """
    if len(candidates) == 1:
        return candidates[0]
    folds = _folds(rows, seed)
    scores = [np.mean([score(candidate, rows[train], rows[test]) for train, test in folds]) for candidate in candidates]
    return candidates[int(np.argmax(scores))]


def is_clearly_better(
    one: Candidate,
    other: Candidate,
    rows: np.ndarray,
    scores: Callable[[Candidate, np.ndarray, np.ndarray], np.ndarray],
    seed: int = 0,
) -> bool:
    """Whether a candidate beats another by more than one standard error of the paired differences of held-out rows.

    Args:
        one: The candidate.
        other: The one to be preferred otherwise, such as a simpler one.
        rows: (n, D).
        scores: Like `score` of :func:`best_candidate`, but it returns the log density of each test row.
        seed: Random seed of the folds.

    Example:
        >>> rows = np.random.default_rng(0).normal(3.0, 1.0, size=(50, 1))
        >>> is_clearly_better(3.0, 4.5, rows, lambda mean, train, test: -((test[:, 0] - mean) ** 2))
        True
    """
    gains = np.concatenate(
        [
            scores(one, rows[train], rows[test]) - scores(other, rows[train], rows[test])
            for train, test in _folds(rows, seed)
        ]
    )
    return bool(gains.mean() > gains.std(ddof=1) / np.sqrt(len(gains)))


def _folds(rows, seed):
    from sklearn.model_selection import KFold

    return list(KFold(NUM_FOLDS, shuffle=True, random_state=seed).split(rows))
