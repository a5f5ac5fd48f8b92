"""The number of latent variables, chosen by the bound of held-out rows.

The numbers 1, 2, 4, 8, ... are tried in turn, each for a limited number of steps and on the same held-out rows, until
the bound of these rows stops improving.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from aevb.settings.arguments import ROWS_PER_VARIABLE
from aevb.training.budget import Budget
from aevb.training.evaluation import Batches
from aevb.training.feed import Feed, Resident, generator
from aevb.training.held_out import held_out_terms
from aevb.training.progress import ShareDone
from aevb.training.recipe import num_active
from aevb.training.run import train_on
from aevb.training.weights import weighted_mean

SEARCH_STEPS = 2_000  # for each number tried: a fifth of what a whole run may take
NUM_STD_ERRORS = 2  # a smaller number may be this far below the best; one would be exceeded by chance once in six
MAX_LATENT_DIM = 256


class Search(NamedTuple):
    """The outcome of a search."""

    latent_dim: int  # the smallest number within two standard errors of the best
    rows: list[dict]  # one for each number tried, see :func:`compare`

    @classmethod
    def restored(cls, latent_dim: int, rows: list[dict]) -> "Search":
        """Return a search that was saved as JSON, which has null for NaN."""
        return cls(latent_dim, [{name: np.nan if item is None else item for name, item in row.items()} for row in rows])

    def __str__(self):
        others = [row for row in self.rows if row["latent_dim"] != self.latent_dim]
        (bound,) = [row["validation_lower_bound"] for row in self.rows if row["latent_dim"] == self.latent_dim]
        comparison = "".join(f"; with {row['latent_dim']}: {row['validation_lower_bound']:.2f}" for row in others)
        return f"latent_dim: {self.latent_dim} (held-out bound {bound:.2f}{comparison}, in nats per row)"


def candidates(data_dim: int, num_rows: int, smallest: int = 1) -> list[int]:
    """Return the numbers to try: powers of two up to D, a tenth of the training rows, and 256.

    Example:
        >>> candidates(13, 142), candidates(784, 50_000)[-1], candidates(3, 15, smallest=2)
        ([1, 2, 4, 8], 256, [2])
    """
    largest = min(data_dim, num_rows // ROWS_PER_VARIABLE, MAX_LATENT_DIM)
    return [size for size in (2**power for power in range(9)) if size == smallest or smallest < size <= largest]


def grow(
    bounds_of: Callable[[int], tuple[np.ndarray, int]], sizes: Sequence[int], weights: np.ndarray | None = None
) -> Search:
    """Try numbers in ascending order until one does not improve on the best by more than one standard error.

    The search also ends at a number that has no more active variables than the previous numbers tried: an improvement
    is then not due to the additional variables.

    Args:
        bounds_of: Function from a number of latent variables to the bound of each held-out row, (n,), and the number of
            active ones.
        sizes: The numbers.
        weights: (n,), of the held-out rows; None if they are equal.
    """
    tried, best = {}, None
    for size in sizes:
        bounds, num_active = bounds_of(size)
        tried[size] = np.asarray(bounds, np.float64)
        if best is not None:
            if num_active <= best:
                return compare(tried, best, weights)
            gain, std_error = paired(tried[size], tried[best], weights)
            if not gain > std_error:
                break
        best = size
    return compare(tried, weights=weights)


def compare(tried: dict[int, np.ndarray], largest: int = MAX_LATENT_DIM, weights: np.ndarray | None = None) -> Search:
    """Choose the smallest number whose bound is at most two paired standard errors below the best.

    Args:
        tried: The bound of each held-out row, (n,), by the number of latent variables, ascending.
        largest: The largest number that may be the best.
        weights: (n,), of the held-out rows; None if they are equal.

    Returns:
        The number, and for each number tried ``latent_dim``, ``validation_lower_bound`` (the mean), ``below_best`` (the
        mean difference from the best) and its ``std_error``, which is paired: that of the rows' differences.
    """
    means = {size: weighted_mean(bounds, weights) for size, bounds in tried.items()}
    best = max((size for size in tried if size <= largest), key=lambda size: np.nan_to_num(means[size], nan=-np.inf))
    rows = []
    for size, bounds in tried.items():
        below, std_error = paired(tried[best], bounds, weights)
        row = {"latent_dim": size, "validation_lower_bound": means[size]}
        rows.append({**row, "below_best": below, "std_error": std_error})
    chosen = next((row["latent_dim"] for row in rows if row["below_best"] <= NUM_STD_ERRORS * row["std_error"]), best)
    return Search(chosen, rows)


def paired(one: np.ndarray, other: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, float]:
    """Return the mean of the rows' differences, and its standard error; rows that are not finite are left out.

    With weights the mean is weighted, and the rows, however often each one counts, are what varies by chance.

    Example:
        >>> [round(number, 4) for number in paired(np.array([1.0, 2.0, 6.0]), np.array([0.0, 0.0, 3.0]))]
        [2.0, 0.5774]
    """
    differences = one - other
    is_finite = np.isfinite(differences)
    differences, n = differences[is_finite], np.count_nonzero(is_finite)
    if n < 2:
        return np.nan, np.nan
    if weights is None:
        return float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(n))
    shares = weights[is_finite] / weights[is_finite].sum()
    mean = shares @ differences
    return float(mean), float(np.sqrt(n / (n - 1) * np.sum((shares * (differences - mean)) ** 2)))


def search_feed(feed: Feed, batch_size: int, key: Array) -> Resident:
    """Return rows in memory for the search, with the held-out rows of a feed; a random subset of many training rows."""
    assert feed.held_out is not None
    source, rows, _ = feed.first()
    most = SEARCH_STEPS * batch_size
    if len(rows) > most:
        rows = np.sort(generator(key).choice(rows, most, replace=False))
    if isinstance(feed, Resident):
        return replace(feed, train_rows=rows, batch_size=batch_size)
    held_out, validation_rows, _ = feed.held_out
    return Resident(source, rows, batch_size, validation_rows, held_out)


def search_latent_dim(
    start: Callable[[int], tuple[Any, Any]],
    feed: Resident,
    budget: Budget,
    sizes: Sequence[int],
    *,
    key: Array,
    progress: bool = False,
) -> Search:
    """Choose the number of latent variables by the bound of held-out rows.

    Args:
        start: Function from a number of latent variables to the learner and its initial state.
        feed: The rows, some of them held out.
        budget: What a whole run may take; a trial takes at most 2,000 steps of it, without reductions of the step size.
        sizes: The numbers to try, ascending.
        key: Random key, the same for each trial.
        progress: Whether to show a progress bar for each trial.

    Raises:
        KeyboardInterrupt: The search was interrupted.
    """
    train_key, judge_key = jax.random.split(key)
    assert feed.held_out is not None
    held_out = Batches(*feed.held_out)
    steps = feed.plan.num_steps * feed.plan.num_chunks / feed.epochs_per_row  # of an epoch
    max_epochs = min(budget.max_epochs, max(round(SEARCH_STEPS / steps), feed.epochs_per_row))
    patience = budget.patience._replace(num_reductions=0)

    def bounds_of(size):
        learner, state = start(size)
        with ShareDone(progress, f"latent_dim={size}") as bar:
            trained = train_on(
                learner,
                state,
                feed,
                key=train_key,
                max_epochs=max_epochs,
                patience=patience,
                progress=None,
                callback=lambda row: bar.update(min(row["epoch"] / max_epochs, 1.0)),
            )
        if trained.stopped_because == "interrupted":
            raise KeyboardInterrupt
        bounds = held_out_terms(learner, held_out, judge_key, trained.state).lower_bound
        return np.asarray(bounds), num_active(learner, trained.state, feed)

    return grow(bounds_of, sizes, held_out.weights)
