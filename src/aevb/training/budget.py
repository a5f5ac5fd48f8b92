"""How much work a run does: batch size, epochs, patience and held-out rows for a given number of rows.

With few rows an epoch is only a step or two, so automatic choices are counted in steps.
"""

from typing import NamedTuple

AUTO = "auto"
MAX_EPOCHS = 100  # the automatic max_epochs is at least this, and
MAX_STEPS = 10_000  # at least this many steps, if held-out rows can end the run earlier
PATIENCE_EPOCHS = 10  # the automatic patience is at least this, and
PATIENCE_STEPS = 1_000  # at least this many steps
DEADLINES = 0.7, 0.9  # shares of the automatic max_epochs: the last steps are small, as noise hides what they gain
STEPS_PER_ROW = 50  # at least, per row of the history: held-out rows are evaluated that often
SMALL = (
    1_000  # rows; with fewer, batches are smaller, more rows are held out, and these are used for training at the end
)
SMALL_PRECISION = 10.0  # of the parameters' prior, with few rows
BATCH_SIZES = 32, 100  # smallest and largest
HELD_OUT_SHARES = 0.1, 0.2  # with many rows, and with few
MIN_ROWS = 20  # with fewer, nothing is held out


class Patience(NamedTuple):
    """How long a run continues without a better held-out bound."""

    rows: int | None  # of the history; None: without limit
    num_reductions: int = 0  # of the learning rate, each from the best state, before the run ends
    judges_start: bool = False  # whether the start can be the best state
    deadlines: tuple[int, ...] = ()  # rows of the history after which the learning rate is reduced in any case
    warm_up: int = 0  # steps that do not count, because the objective is not the bound yet

    def is_exhausted(self, rows_since_best: int, num_rows: int, num_steps: int) -> bool:
        """Whether the bound has not improved for long enough, after so many rows of the history and steps."""
        if self.rows is None:
            return False
        rows_that_count = num_rows * max(1 - self.warm_up / num_steps, 0.0) if num_steps else num_rows
        return min(rows_since_best, rows_that_count) >= self.rows

    def is_due(self, num_reductions: int, num_rows: int) -> bool:
        """Whether it is time to reduce the learning rate, after so many reductions and rows of the history."""
        return num_reductions < len(self.deadlines) and num_rows >= self.deadlines[num_reductions]


class Budget(NamedTuple):
    """Limits of a run."""

    max_epochs: int
    epochs_per_row: int  # of the history
    patience: Patience


def batch_size_for(num_rows: int | None, batch_size: int | str) -> int:
    """Return M: the given value, or a tenth of the rows, from 32 to 100; 100 if their number is unknown.

    Example:
        >>> [batch_size_for(n, "auto") for n in (20, 150, 569, 50_000, None)]
        [20, 32, 56, 100, 100]
    """
    if batch_size != AUTO:
        return int(batch_size)
    fewest, most = BATCH_SIZES
    return most if num_rows is None else min(num_rows, max(fewest, min(num_rows // 10, most)))


def num_held_out(num_rows: int, fraction: float | str, most: int | None = None) -> int:
    """Return how many rows are held out: the given fraction, or a tenth; with few rows up to a fifth.

    Example:
        >>> [num_held_out(n, "auto") for n in (15, 40, 150, 700, 50_000)], num_held_out(90, 0.1)
        ([0, 8, 30, 100, 5000], 0)
    """
    most = num_rows if most is None else most
    if fraction != AUTO:
        requested = min(int(fraction * num_rows), most)
        return requested if requested >= 10 else 0
    few, many = HELD_OUT_SHARES
    chosen = max(int(few * num_rows), min(int(many * num_rows), SMALL // 10))
    return min(chosen, most) if num_rows >= MIN_ROWS else 0


def prior_precision(num_rows: float | None, prior: str | float | None, *, is_standardized: bool) -> float:
    """Return the precision of the parameters' prior: 1, or 10 with few rows; 0 without a prior, or if N is unknown.

    A number is the precision itself.

    The narrower prior is for standardized columns: the logits of binary columns need larger weights.

    Example:
        >>> prior_precision(200, "auto", is_standardized=True), prior_precision(200, "normal", is_standardized=True)
        (10.0, 1.0)
        >>> prior_precision(200, "auto", is_standardized=False), prior_precision(None, "auto", is_standardized=True)
        (1.0, 0.0)
    """
    if prior is None or num_rows is None:
        return 0.0
    if not isinstance(prior, str):
        return float(prior)
    return SMALL_PRECISION if prior == AUTO and is_standardized and num_rows < SMALL else 1.0


def budget_for(
    steps_per_epoch: int,
    max_epochs: int | str,
    patience: int | str | None,
    *,
    is_judged: bool,
    may_repeat: bool,
    epochs_per_row: int | None = None,
) -> Budget:
    """Return the limits of a run.

    Args:
        steps_per_epoch: Steps in a pass through the training rows.
        max_epochs: A number, or ``"auto"``.
        patience: Epochs, ``"auto"``, or None for no limit.
        is_judged: Whether rows are held out.
        may_repeat: Whether several epochs may be one row of the history.
        epochs_per_row: Value of the run that is resumed, whose `max_epochs` may have differed; None for a new run.

    Example:
        >>> budget_for(4, "auto", "auto", is_judged=True, may_repeat=True)[:2]
        (2500, 13)
        >>> budget_for(4, "auto", "auto", is_judged=True, may_repeat=True).patience[:4]
        (20, 2, False, (134, 172))
        >>> budget_for(450, "auto", "auto", is_judged=True, may_repeat=True).patience[:4]
        (10, 2, False, (70, 90))
        >>> budget_for(4, 3, 10, is_judged=True, may_repeat=True).patience[:4]
        (10, 0, False, ())
    """
    is_auto = max_epochs == AUTO
    if epochs_per_row is None:
        epochs_per_row = _ceil(STEPS_PER_ROW, steps_per_epoch) if is_auto and may_repeat else 1
    if is_auto:
        max_epochs = max(MAX_EPOCHS, _ceil(MAX_STEPS, steps_per_epoch) if is_judged else 0)
    num_reductions = 0
    if patience == AUTO:
        num_reductions = 2
        patience = max(PATIENCE_EPOCHS, _ceil(PATIENCE_STEPS, steps_per_epoch))
    rows = None if patience is None else _ceil(int(patience), epochs_per_row)
    num_rows = int(max_epochs) // epochs_per_row
    deadlines = tuple(int(share * num_rows) for share in DEADLINES) if is_auto and is_judged and num_reductions else ()
    return Budget(int(max_epochs), epochs_per_row, Patience(rows, num_reductions, deadlines=deadlines))


def _ceil(work, unit):
    return -(-work // unit)
