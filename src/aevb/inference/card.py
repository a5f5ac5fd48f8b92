"""A fitted posterior as a card for notebooks."""

from typing import Any

import jax

from aevb.html import card, curve
from aevb.inference.pareto import k_hat_threshold
from aevb.inference.summary import Summary, summarize

MOST_ROWS = 20  # numbers in the table of a card


def card_of(fitted: Any) -> str:
    """Return a fitted posterior as HTML for notebooks: whether to trust it, its variables, and the course of learning.

    Args:
        fitted: A :class:`aevb.inference.fitted.FittedPosterior`.
    """
    num_draws = len(jax.tree.leaves(fitted.draws)[0])
    source = f"{fitted.details.num_chains} Markov chains" if fitted.r_hat is not None else f"q, {fitted.family}"
    limit = k_hat_threshold(len(fitted.log_weights))
    ended = fitted.stopped_because if fitted.converged_ is None or fitted.converged_ else "not converged"
    facts = {
        "lower bound on log p(X)": f"{fitted.lower_bound:.3f} +- {fitted.std_error:.3f} nats",
        "draws": f"{num_draws:,}, from {source}",
        "k-hat": f"{fitted.k_hat:.2f} ({'trusted' if fitted.k_hat < limit else 'not trusted'}: limit {limit:.2f})",
        "training": ended,
    }
    rows = summarize(fitted.draws).rows
    left_out = len(rows) - MOST_ROWS
    if left_out > 0:
        facts["variables"] = f"the first {MOST_ROWS} of {len(rows)} numbers; summary() has all"
    picture = curve(fitted.history, "step", {"lower_bound": "lower bound"})
    table = Summary(rows[:MOST_ROWS])._repr_html_()
    return card("Posterior", facts, warnings=fitted.warnings, picture=picture, table=table)
