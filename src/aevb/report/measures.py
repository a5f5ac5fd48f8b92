"""The numbers of a run, each with how it came about."""

import numpy as np

from aevb.data.trial import Trial
from aevb.models import LIKELIHOODS, has_real_support
from aevb.report.images import as_values
from aevb.report.nearest import nearest_rows
from aevb.report.references import grey_level_ceiling, independent_gaussians, independent_pixels
from aevb.vae import VAE

NUM_SAMPLES = 10  # L of the held-out bound
MAX_ROWS = 10_000  # that a bound is averaged over
LIKELIHOOD_ROWS, LIKELIHOOD_SAMPLES = 100, 500
NEAREST_ROWS = 100
ACTIVE = 0.01  # variance over the data of a latent mean, above which it counts: Burda, Grosse and Salakhutdinov (2016)


def measure(vae: VAE, trial: Trial, seed: int, *, with_likelihood: bool = True) -> dict:
    """Return what `metrics.json` says about a model, but for versions and machine.

    Args:
        vae: The model.
        trial: Its data.
        seed: Of the run.
        with_likelihood: Whether to estimate log p(x) besides the bound.
    """
    origin = {"unit": "nats a datapoint", "split": trial.split, "binarization": trial.binarization, "seed": seed}
    codes = vae.transform(some(trial.test))
    metrics: dict = {}
    if vae.recognition_ is not None:
        metrics["held_out_lower_bound"] = lower_bound(vae, trial.test) | origin
        metrics["training_lower_bound"] = lower_bound(vae, some(trial.train, len(trial.test))) | origin
        metrics["training_lower_bound"]["split"] = f"{min(len(trial.test), len(trial.train)):,} of the training rows"
    if with_likelihood:
        metrics["held_out_log_likelihood"] = log_likelihood(vae, some(trial.test, LIKELIHOOD_ROWS)) | origin
    variances = np.var(codes, axis=0)
    return metrics | {
        "comparison": _comparison(vae, trial),
        "active_units": {
            "value": int(np.sum(variances > ACTIVE)),
            "of": int(vae.latent_dim),
            "variances": [float(variance) for variance in variances],
            "threshold": ACTIVE,
            "binarization": trial.binarization,
        },
        **({"nearest_training_row": _nearest(vae, trial, seed)} if trial.dataset.image_shape else {}),
        "data": trial.dataset.name,
        "likelihood": vae.likelihood_,
        "epochs": len(vae.history_),
        "stopped_because": vae.stopped_because_,
        "training_seconds": vae.history_[-1]["seconds"],
    }


def lower_bound(vae: VAE, rows: np.ndarray) -> dict:
    """Return the average bound of rows, its two terms, and its standard error over the rows."""
    rows = some(rows)
    bounds, *terms = (np.asarray(term, np.float64) for term in vae._bound_terms(rows, NUM_SAMPLES))
    found = {"value": float(bounds.mean()), "std_error": _std_error(bounds), "rows": len(rows)}
    found |= {name: float(term.mean()) for name, term in zip(("reconstruction", "kl_divergence"), terms, strict=True)}
    estimator = "sgvb-b" if vae.estimator_ == "sgvb-b" else "sgvb-a"  # whichever was learned by
    return found | {"estimator": estimator, "num_samples": NUM_SAMPLES}


def log_likelihood(
    vae: VAE, rows: np.ndarray, method: str | None = None, num_samples: int = LIKELIHOOD_SAMPLES
) -> dict:
    """Return the average log p(x) of some rows, with its error: of the choice of rows, and of the sampling of z.

    Args:
        vae: The model.
        rows: (n, D).
        method: See :meth:`aevb.VAE.log_likelihood`; None for ``"laplace"``, or where z is not all real numbers
            ``"importance"``. Measured on the 2-D model of `aevb demo` with 500 samples, "laplace" differs from
            quadrature by 0.002 nats on average and 0.02 a row; "importance" by 0.5 and 2.0.
        num_samples: Of z.
    """
    if method is None:
        method = "laplace" if has_real_support(vae.generative_.latent_distribution()) else "importance"
    estimate = vae.log_likelihood(rows, method=method, num_samples=num_samples)
    return {
        "value": estimate.mean,
        "std_error": _std_error(estimate.values),
        "std_error_of_sampling": estimate.std_error,
        "rows": len(rows),
        "method": method,
        "estimator": f"{method}, {estimate.effort}",
        "warnings": list(estimate.warnings),
    }


def some(rows: np.ndarray, most: int = MAX_ROWS) -> np.ndarray:
    """Return rows from all over a matrix, evenly, if it has more than that many."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]


def _comparison(vae, trial):
    train, test = as_values(vae, trial.train), as_values(vae, some(trial.test))
    if LIKELIHOODS[vae.likelihood_].density:
        return {"independent_gaussians": independent_gaussians(train, test)}
    return {"independent_pixels": independent_pixels(train, test), "grey_level_ceiling": grey_level_ceiling(test)}


def _nearest(vae, trial, seed):
    """Return how far new and held-out images are from the training images."""
    scale = float(vae.scale_) if trial.train.dtype == np.uint8 else 1.0
    new, held_out = (
        vae.sample(NEAREST_ROWS, mean=True, random_state=seed),
        as_values(vae, some(trial.test, NEAREST_ROWS)),
    )
    return {
        "samples": float(np.median(nearest_rows(new, trial.train, scale).distances)),
        "held_out": float(np.median(nearest_rows(held_out, trial.train, scale).distances)),
        "unit": "median Euclidean distance to the nearest training image; samples are means of p(x|z)",
        "rows": NEAREST_ROWS,
        "binarization": trial.binarization,
        "seed": seed,
    }


def _std_error(numbers):
    return float(np.std(numbers, ddof=1) / np.sqrt(len(numbers))) if len(numbers) > 1 else float("nan")
