"""How good a fitted posterior is: its bound, its error and k-hat, from draws weighted using all data."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np

from aevb.inference.fitted import Details, FittedPosterior, draw_arrays
from aevb.inference.importance import log_mean_exp
from aevb.inference.log_weights import log_weights_of
from aevb.inference.pareto import k_hat_threshold, pareto_k_hat
from aevb.posterior.weighing import NEGLIGIBLE_GAP

NUM_DRAWS = 2000  # for the bound, its error and k-hat


def judge(learner, trained, data, steps_per_epoch, key, seed) -> FittedPosterior:
    """Draw from the posterior, weight the draws using all data, and warn if the weights give reasons for doubt."""
    q, local = learner.models(trained.state)
    draws, log_weights = log_weights_of(learner, (q, local), data, key, NUM_DRAWS)
    k_hat = _k_hat(log_weights)
    doubts, limit = [], k_hat_threshold(NUM_DRAWS)
    # An estimate of KL(q || posterior). A Gaussian q has k-hat above 1 whenever the posterior has heavier tails, such
    # as that of the mean of 50 numbers of unknown variance; means and spreads are still right within 2% there.
    gap = float(log_mean_exp(log_weights) - np.mean(log_weights))
    if not (k_hat <= limit or gap < NEGLIGIBLE_GAP):
        doubts.append(
            f"k-hat is {k_hat:.2f}, above {limit:.2f}: the posterior has modes or tails that q does not cover, and "
            f"means and spreads may be wrong; estimated from the draws, KL(q || posterior) is at least {gap:.2f} nats. "
            'Try posterior="full-gaussian" or "flow", another parameterization of the model, or more steps; or use '
            "MCMC."
        )
    for doubt in doubts:
        warnings.warn(doubt, UserWarning, stacklevel=3)
    rows = [row["lower_bound"] for row in trained.history]
    history = [
        {"step": row["epoch"] * steps_per_epoch, "lower_bound": row["lower_bound"], "seconds": row["seconds"]}
        for row in trained.history
    ]
    return FittedPosterior(
        posterior=q,
        local=local,
        draws=draws,
        log_weights=log_weights,
        lower_bound=float(np.mean(log_weights)),
        std_error=float(np.std(log_weights, ddof=1) / np.sqrt(len(log_weights))),
        k_hat=k_hat,
        history=history,
        stopped_because=trained.stopped_because.replace("max_epochs", "max_steps"),
        seed=seed,
        data=data if local is not None else None,
        warnings=tuple(doubts),
        converged_=_has_levelled(rows),
        details=Details(
            draw_q=lambda num_samples, seed: draw_arrays(q, num_samples, seed),
            log_prob=lambda values: _log_prob(q, draws, values),
        ),
    )


def _log_prob(q, draws, values):
    """Return log q of values of the variables, with a leading axis like that of draws or without."""
    values = jax.tree.map(jnp.asarray, values)
    points, log_det = (values, 0.0) if q.variables is None else q.variables.unconstrain(values)
    has_axis = jax.tree.leaves(values)[0].ndim == jax.tree.leaves(draws)[0].ndim
    return np.asarray((jax.vmap(q.log_prob) if has_axis else q.log_prob)(points) - log_det, np.float64)


def _has_levelled(bounds):
    """Return whether the last fifth of the rows of the history is no better than the fifth before it."""
    num = len(bounds) // 5
    if num < 2:
        return False
    last, before = np.array(bounds[-num:]), np.array(bounds[-2 * num : -num])
    return bool(last.mean() - before.mean() < max(0.05, 2 * last.std() / np.sqrt(num)))


def _k_hat(log_weights):
    """Return k-hat; minus infinity if the weights are equal up to rounding, where there is no tail."""
    rounding = 32 * np.finfo(np.float32).eps * np.abs(log_weights).max()
    return -np.inf if np.ptp(log_weights) < max(0.01, rounding) else float(pareto_k_hat(log_weights))
