"""Reasons not to trust an estimate of log p(x), and what to try next: a finite ladder of methods."""

from typing import NamedTuple

import numpy as np

from aevb.inference.pareto import k_hat_threshold

RELIABLE_DIMENSIONS = 4  # of appendix D's estimator: "less then 5 dimensions"
MOST_SAMPLES = {"importance": 100_000, "ais": 10_000}  # more are rarely worth the time
MOST_POINTS = {1: 4097, 2: 513}  # per side of a grid, by the number of latent dimensions
LAST_WORD = (
    "no other method here does better: treat the values as lower bounds, which they are on average, and do not compare "
    "models by differences of this size"
)


class Rung(NamedTuple):
    """A method for estimating log p(x), and its effort."""

    method: str
    effort: int  # samples, temperatures, or points per side of a grid


def next_rung(rung: Rung, latent_dim: int, *, is_real: bool = True) -> Rung | None:
    """Return what to try after an estimate that cannot be trusted, or None after the last rung.

    The order is importance, laplace or hmc, ais, ais with ten times the temperatures; or, for one or two latent
    variables, quadrature with finer and finer grids. Only importance sampling works with any prior.

    Args:
        rung: What was tried.
        latent_dim: J.
        is_real: Whether the prior's support is all real numbers.

    Example:
        >>> next_rung(Rung("importance", 1000), 10)
        Rung(method='laplace', effort=1000)
        >>> next_rung(Rung("ais", 10_000), 10) is None
        True
    """
    method, effort = rung
    if method == "quadrature":
        return Rung(method, min(4 * effort, MOST_POINTS[latent_dim])) if effort < MOST_POINTS[latent_dim] else None
    if is_real and latent_dim in MOST_POINTS:
        return Rung("quadrature", 0)
    if is_real and method == "importance":
        return Rung("laplace", effort)
    if is_real and method != "ais":
        return Rung("ais", 1000)
    return Rung(method, min(10 * effort, MOST_SAMPLES[method])) if effort < MOST_SAMPLES[method] else None


def advice(rung: Rung, latent_dim: int, *, is_real: bool = True) -> str:
    """Return what to do after an estimate that cannot be trusted, as text.

    Example:
        >>> advice(Rung("ais", 1000), 10)
        'try num_samples=10000'
    """
    following = next_rung(rung, latent_dim, is_real=is_real)
    if following is None:
        return LAST_WORD
    if following.method != rung.method:
        return f"try method={following.method!r}"
    return f"try {'num_points' if rung.method == 'quadrature' else 'num_samples'}={following.effort}"


def reasons_for_doubt(
    rung: Rung, latent_dim: int, values: np.ndarray, std_errors: np.ndarray, diagnostics: dict, *, is_real: bool = True
) -> tuple[str, ...]:
    """Return the reasons not to trust estimates of log p(x), one sentence each, with what to do.

    Args:
        rung: How they were made.
        latent_dim: J.
        values: (N,).
        std_errors: (N,).
        diagnostics: Diagnostics of the method, arrays (N,).
        is_real: Whether the prior's support is all real numbers.
    """
    found = []

    def doubt(is_bad, text):
        if (count := int(np.sum(is_bad))) > 0:
            found.append(f"at {count:,} of {len(values):,} datapoints {text}")

    method = rung.method
    if method == "quadrature":
        rung = Rung(method, int(np.max(diagnostics["num_points"])))
    what_to_do = advice(rung, latent_dim, is_real=is_real)
    if method == "hmc" and latent_dim > RELIABLE_DIMENSIONS:
        found.append(
            f"the estimator of appendix D is reliable below 5 latent dimensions, but the model has {latent_dim}: "
            f"{what_to_do}"
        )
    doubt(~np.isfinite(values), "the estimate is not finite")
    if "k_hat" in diagnostics:
        limit = k_hat_threshold(rung.effort)
        reason = f"k-hat is above {limit:.2f}: a few samples dominate the estimate, values are probably too low and "
        doubt(diagnostics["k_hat"] > limit, f"{reason}their errors too small; {what_to_do}")
    if "r_hat" in diagnostics:
        doubt(diagnostics["r_hat"] > 1.05, f"chains disagree (r-hat above 1.05); {what_to_do}")
    if method == "ais":
        doubt(std_errors > 0.5, f"chains disagree by more than half a nat; {what_to_do}")
    if method == "quadrature":
        doubt(std_errors > 1e-3, f"the grid is too coarse (error above 0.001 nats); {what_to_do}")
    return tuple(found)
