"""The result of a fit: draws of the posterior from weighted draws of q or from chains, and reasons for doubt."""

import jax
import numpy as np

from aevb.inference.approximation import Approximation
from aevb.inference.fitted import Details, FittedPosterior
from aevb.inference.pareto import k_hat_threshold, smoothed_weights
from aevb.posterior.chains import Chains
from aevb.posterior.density import Density
from aevb.posterior.gaussian import Gaussian
from aevb.posterior.modes import missed
from aevb.posterior.selection import Trial
from aevb.posterior.start import Start
from aevb.posterior.student import Student
from aevb.posterior.weighing import NEGLIGIBLE_GAP, TRUSTED, Weighted, resampled

FEWEST_EFFECTIVE = 100  # draws, below which weights are too unequal to use


def approximation(density: Density, q) -> Approximation:
    """Return q with its variables, without the model."""
    if isinstance(q, Gaussian | Student):
        df = q.df if isinstance(q, Student) else None
        return Approximation(density.variables, q.mean, _triangular(q.factor), df, precise=density.precise)
    base = q.base
    return Approximation.of_module(
        density.variables, q.family, q.module, density.precise, base.mean, _triangular(base.factor)
    )


def _triangular(factor):
    return np.abs(factor) if factor.ndim == 1 else np.linalg.cholesky(factor @ factor.T)


def build(density: Density, trial: Trial, tried: list[Trial], start: Start, seed: int, chains: Chains | None, predict):
    """Return the fitted posterior."""
    weighted = trial.weighted
    finite = weighted.log_weights[np.isfinite(weighted.log_weights)]
    doubts = chains.doubts() if chains is not None else _doubts(density, trial)
    points = None if chains is None else chains.points.reshape(-1, density.size)
    doubts += _several_modes(missed(density, start.modes, weighted, points, np.random.default_rng(seed)))
    draws, effective, details = (_of_weights if chains is None else _of_chains)(density, weighted, seed, chains)
    q = approximation(density, weighted.q)
    return FittedPosterior(
        posterior=q,
        local=None,
        draws=draws,
        log_weights=weighted.log_weights,
        lower_bound=float(finite.mean()),
        std_error=float(finite.std(ddof=1) / np.sqrt(len(finite))),
        k_hat=weighted.k_hat,
        history=trial.history,
        stopped_because=trial.stopped_because,
        seed=seed,
        warnings=tuple(doubts),
        family=trial.family,
        converged_=trial.converged,
        effective_sample_size=effective,
        tried=tuple(_row(one) for one in tried),
        details=Details(**details, draw_q=q.draw, log_prob=q.log_prob, predict=predict),
    )


def _row(trial):
    w = trial.weighted
    return {"family": trial.family, "k_hat": w.k_hat, "errors": w.errors, "converged": trial.converged}


def _of_weights(density, weighted, seed, _):
    """Return draws resampled by their weights, how many they are worth, and what is known about them."""
    num = len(weighted.weights)
    if weighted.effective < FEWEST_EFFECTIVE:  # flagged, and better without weights
        return density.constrain(weighted.points), weighted.effective, {}
    rng = np.random.default_rng(seed)
    index = resampled(weighted.weights, num, rng)
    proposals = density.constrain(weighted.points)

    def draw_more(num_samples, seed):
        rng = np.random.default_rng(seed)
        points, log_q = weighted.q.draw(rng, int(num_samples * min(num / weighted.effective, 4.0)))
        weights, _ = smoothed_weights(density(points)[0] - log_q)
        return density.constrain(points[resampled(weights, num_samples, rng)])

    details = {"proposals": proposals, "weights": weighted.weights, "index": index, "is_final": True}
    draws = jax.tree.map(lambda values: values[index], proposals)
    return draws, weighted.effective, {**details, "draw_more": draw_more}


def _of_chains(density, weighted, seed, chains):
    """Return the draws of chains, one after the other, their effective number by name, and what is known about them."""
    from aevb.inference.chains import effective_sample_size, r_hat

    num_chains, num, D = chains.points.shape
    draws = density.constrain(chains.points.reshape(-1, D))
    apart = jax.tree.map(lambda values: values.reshape(num_chains, num, *values.shape[1:]), draws)
    details = {"num_chains": num_chains, "r_hat": jax.tree.map(r_hat, apart), "is_final": True}
    return draws, jax.tree.map(effective_sample_size, apart), details


def _several_modes(shares: list[float]) -> list[str]:
    """Return a sentence about modes that the draws do not have, from their shares of the mass."""
    if not shares:
        return []
    shown = ", ".join(f"{share:.0%}" for share in (1 - sum(shares), *shares))
    return [
        f"The posterior has at least {len(shares) + 1} modes, with about {shown} of its mass; the draws cover the "
        "first. Order or constrain the variables so that the modes become one, if they are the same up to names."
    ]


def _doubts(density: Density, trial: Trial) -> list[str]:
    """Return reasons not to trust a fit, one sentence each."""
    found, w = [], trial.weighted
    limit = k_hat_threshold(len(w.weights))
    advice = 'Use refine="hmc", which continues with Markov chains, or another parameterization of the model.'
    # A Gaussian q has k-hat above 1 whenever the posterior has heavier tails, such as that of the mean of 50 numbers of
    # unknown variance; means and spreads are still right within 2% there.
    if not w.is_covered and not w.gap < NEGLIGIBLE_GAP:
        found.append(
            f"k-hat is {w.k_hat:.2f}, above {limit:.2f}: the posterior has modes or tails that q does not cover, and "
            f"means and spreads may be wrong; estimated from the draws, KL(q || posterior) is at least {w.gap:.2f} "
            f"nats. {advice}"
        )
    elif max(error / limit for error, limit in zip(w.errors, TRUSTED, strict=True)) > 1:
        found.append(
            f"k-hat is {w.k_hat:.2f}, but {len(w.weights):,} draws, worth {w.effective:,.0f} independent ones, are too "
            f"few: a mean may be off by {2 * w.errors[0]:.2f} standard deviations, a standard deviation by "
            f"{2 * w.errors[1]:.0%}. {advice}"
        )
    if not trial.converged and trial.stopped_because != "interrupted" and not w.would_be_enough(0):
        found.append(
            f"Learning has not converged after {trial.history[-1]['step']:,} steps: increase max_steps. {advice}"
        )
    if w.share_bad > 0 or trial.num_recovered:
        found.append(_where_not_finite(density, trial))
    return found


def _where_not_finite(density, trial):
    """Return a sentence about draws where the log joint is not finite, with the variable that is responsible."""
    w: Weighted = trial.weighted
    text = f"The log joint is not finite at {w.share_bad:.1%} of q's draws"
    if trial.num_recovered:
        text += f", and was not in {trial.num_recovered} steps, after which q was made narrower"
    bad = np.flatnonzero(~np.isfinite(w.log_weights))
    if len(bad) and (name := responsible(density, w.points[bad[0]], w.q.gaussian().mean)) is not None:
        value = jax.tree.map(lambda v: v[0], density.constrain(w.points[bad[:1]]))
        shown = np.array2string(np.asarray(value[name] if isinstance(value, dict) else value), precision=3)
        text += f", because of the variable {name!r}, for example at {shown}"
    return text + ". These draws are left out; check the model there."


def responsible(density: Density, point: np.ndarray, good: np.ndarray) -> str | None:
    """Return the name of the variable that makes the log joint infinite or NaN at a point.

    It is the first one that makes it finite when it alone is moved to a good point.
    """
    places = density.variables.places()
    mixed = np.repeat(point[None], len(places), axis=0)
    for row, (start, stop) in zip(mixed, places.values(), strict=True):
        row[start:stop] = good[start:stop]
    fixed = np.isfinite(density(mixed)[0])
    names = [name for name, is_fixed in zip(places, fixed, strict=True) if is_fixed]
    return (names[0] or "variables") if names else None
