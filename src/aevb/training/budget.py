"""How much work a run gets: batch size, epochs, patience and held-out rows that suit the number of rows.

With few rows an epoch is a step or two, so what is left to be chosen is counted in steps.
"""

from typing import NamedTuple

AUTO = "auto"
MAX_EPOCHS = 100  # at least so many, and
MAX_STEPS = 10_000  # at least so many steps, if held-out rows can end the run earlier
PATIENCE_EPOCHS = 10  # likewise
PATIENCE_STEPS = 1_000
STEPS_PER_ROW = 50  # of the history, at least: held-out rows are judged that often
SMALL = 1_000  # rows; with fewer, batches are smaller, more rows are held out, and these are learned from in the end
SMALL_PRECISION = 10.0  # of the parameters' prior
BATCH_SIZES = 32, 100
HELD_OUT_SHARES = 0.1, 0.2  # of many and of few rows
MIN_ROWS = 20  # with fewer nothing is held out


class Patience(NamedTuple):
    """How long a run goes on without a better held-out bound."""

    rows: int | None  # of the history; None: to the end
    num_reductions: int = 0  # of the learning rate, each from the best state, before the run ends
    judges_start: bool = False  # whether the start can be the best state


class Budget(NamedTuple):
    """What a run may take."""

    max_epochs: int
    epochs_per_row: int  # of the history
    patience: Patience


def batch_size_for(num_rows: int | None, batch_size: int | str) -> int:
    """Return M: what was given, or a tenth of the rows, from 32 to 100; 100 if their number is unknown.

    Example:
        >>> [batch_size_for(n, "auto") for n in (20, 150, 569, 50_000, None)]
        [20, 32, 56, 100, 100]
    """
    if batch_size != AUTO:
        return int(batch_size)
    fewest, most = BATCH_SIZES
    return most if num_rows is None else min(num_rows, max(fewest, min(num_rows // 10, most)))


def num_held_out(num_rows: int, fraction: float | str, most: int | None = None) -> int:
    """Return how many rows are held out: the fraction given, or a tenth, with few rows up to a fifth.

    Example:
        >>> [num_held_out(n, "auto") for n in (15, 40, 150, 700, 50_000)], num_held_out(90, 0.1)
        ([0, 8, 30, 100, 5000], 0)
    """
    most = num_rows if most is None else most
    if fraction != AUTO:
        wanted = min(int(fraction * num_rows), most)
        return wanted if wanted >= 10 else 0
    few, many = HELD_OUT_SHARES
    wanted = max(int(few * num_rows), min(int(many * num_rows), SMALL // 10))
    return min(wanted, most) if num_rows >= MIN_ROWS else 0


def prior_precision(num_rows: int | None, prior: str | None, *, is_standardized: bool) -> float:
    """Return the precision of the parameters' prior: 1, or 10 with few rows; 0 for none, or if N is unknown.

    The narrower one is for standardized columns: the logits of binary ones need larger weights.

    Example:
        >>> prior_precision(200, "auto", is_standardized=True), prior_precision(200, "normal", is_standardized=True)
        (10.0, 1.0)
        >>> prior_precision(200, "auto", is_standardized=False), prior_precision(None, "auto", is_standardized=True)
        (1.0, 0.0)
    """
    if prior is None or num_rows is None:
        return 0.0
    return SMALL_PRECISION if prior == AUTO and is_standardized and num_rows < SMALL else 1.0


def budget_for(
    steps_per_epoch: int, max_epochs: int | str, patience: int | str | None, *, is_judged: bool, may_repeat: bool
) -> Budget:
    """Return what a run may take.

    Args:
        steps_per_epoch: Of the training rows.
        max_epochs: Given, or ``"auto"``.
        patience: Epochs, ``"auto"``, or None for never.
        is_judged: Whether rows are held out.
        may_repeat: Whether several epochs may be one row of the history.

    Example:
        >>> budget_for(4, "auto", "auto", is_judged=True, may_repeat=True)
        Budget(max_epochs=2500, epochs_per_row=13, patience=Patience(rows=20, num_reductions=2, judges_start=False))
        >>> budget_for(450, "auto", "auto", is_judged=True, may_repeat=True)
        Budget(max_epochs=100, epochs_per_row=1, patience=Patience(rows=10, num_reductions=2, judges_start=False))
        >>> budget_for(4, 3, 10, is_judged=True, may_repeat=True)
        Budget(max_epochs=3, epochs_per_row=1, patience=Patience(rows=10, num_reductions=0, judges_start=False))
    """
    is_auto = max_epochs == AUTO
    epochs_per_row = _ceil(STEPS_PER_ROW, steps_per_epoch) if is_auto and may_repeat else 1
    if is_auto:
        max_epochs = max(MAX_EPOCHS, _ceil(MAX_STEPS, steps_per_epoch) if is_judged else 0)
    num_reductions = 0
    if patience == AUTO:
        num_reductions = 2
        patience = max(PATIENCE_EPOCHS, _ceil(PATIENCE_STEPS, steps_per_epoch))
    rows = None if patience is None else _ceil(int(patience), epochs_per_row)
    return Budget(int(max_epochs), epochs_per_row, Patience(rows, num_reductions))


def _ceil(work, unit):
    return -(-work // unit)
