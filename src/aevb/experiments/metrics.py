"""The two metrics of the paper's figures, in nats per datapoint, with standard errors.

Paper: §5, App. D, App. E.
"""

import jax
import numpy as np

from aevb.estimators import sgvb_b
from aevb.inference.marginal_likelihood import log_likelihood
from aevb.inference.pareto import k_hat_threshold
from aevb.training import Source, lower_bounds

POSTERIOR_SAMPLES, LEAPFROG_STEPS, TUNING_STEPS = 50, 4, 100  # appendix E; the paper does not give the tuning length


def lower_bound(models, source: Source, rows: np.ndarray) -> dict[str, float]:
    """Return the average bound, estimator B with one sample, and the standard error over the rows."""
    generative, recognition = models
    values = lower_bounds(generative, recognition, source, rows, jax.random.key(1), sgvb_b).astype(np.float64)
    return {"mean": float(values.mean()), "std_error": _std_error(values)}


def marginal_likelihood(models, source: Source, rows: np.ndarray) -> dict[str, float]:
    """Return the average of appendix D's estimate with appendix E's settings.

    `std_error` is the error over the rows, `monte_carlo_error` that of the estimate itself. The encoder is not used, so
    that all learners are evaluated alike. `doubtful` counts rows whose estimate is dominated by a few samples.
    """
    generative, _ = models
    x = source.take(rows)
    options = {"num_leapfrog": LEAPFROG_STEPS, "num_tuning": TUNING_STEPS}
    estimate = log_likelihood(
        generative, None, x, jax.random.key(1), method="hmc", num_samples=POSTERIOR_SAMPLES, **options
    )
    is_finite = np.isfinite(estimate.values)
    values, errors = estimate.values[is_finite], estimate.std_errors[is_finite]
    return {
        "mean": float(values.mean()),
        "std_error": _std_error(values),
        "monte_carlo_error": float(np.sqrt(np.sum(errors**2)) / len(errors)),
        "doubtful": int(np.sum(estimate.diagnostics["k_hat"] > k_hat_threshold(POSTERIOR_SAMPLES))),
        "not_finite": int(np.sum(~is_finite)),
    }


METRICS = {"lower-bound": lower_bound, "marginal-likelihood": marginal_likelihood}


def _std_error(values):
    return float(values.std() / np.sqrt(len(values)))
