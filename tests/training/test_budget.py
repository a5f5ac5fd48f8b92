"""How much work default settings allow: steps where epochs are short, and what is given keeps its meaning."""

import pytest

from aevb.training.budget import budget_for


def numbers(steps_per_epoch, max_epochs="auto", patience="auto", *, is_judged=True, may_repeat=True):
    """Return (max_epochs, epochs per row of the history, rows of patience, reductions)."""
    found = budget_for(steps_per_epoch, max_epochs, patience, is_judged=is_judged, may_repeat=may_repeat)
    return found.max_epochs, found.epochs_per_row, found.patience.rows, found.patience.num_reductions


@pytest.mark.parametrize(
    ("arguments", "options", "expected"),
    [
        ((1,), {}, (10_000, 50, 20, 2)),  # 10,000 steps, a row each 50 steps, a patience of 1,000 steps
        ((3,), {}, (3334, 17, 20, 2)),
        ((100,), {}, (100, 1, 10, 2)),  # 100 epochs are as many steps
        ((500,), {}, (100, 1, 10, 2)),
        ((3,), {"is_judged": False}, (100, 17, 20, 2)),  # nothing could end the run earlier
        ((3,), {"may_repeat": False}, (3334, 1, 334, 2)),
        ((3, 20), {}, (20, 1, 334, 2)),
        ((3, "auto", 10), {}, (3334, 17, 1, 0)),  # a patience that is given reduces nothing
        ((3, "auto", None), {}, (3334, 17, None, 0)),
        ((3, 20, 5), {}, (20, 1, 5, 0)),
    ],
)
def test_the_budget_counts_steps(arguments, options, expected):
    assert numbers(*arguments, **options) == expected
