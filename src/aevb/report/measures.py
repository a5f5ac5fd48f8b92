"""The numbers in a report, and how each was computed."""

import jax
import numpy as np

from aevb.data.kinds import discrete_columns, sample_rows
from aevb.data.run_data import RunData
from aevb.explorer.active import active_latents
from aevb.fitted import FittedModel, coding, likelihoods
from aevb.fitted.divided import divided_log_likelihood
from aevb.inference.baselines import fit_baselines, is_comparable
from aevb.inference.diagnostics import THRESHOLD, posterior_collapse
from aevb.inference.result import LogLikelihood
from aevb.models import LIKELIHOODS, has_real_support
from aevb.report.images import as_values
from aevb.report.judgement import hints, judge
from aevb.report.nearest import nearest_rows
from aevb.report.references import (
    grey_level_ceiling,
    independent_columns,
    independent_gaussians,
    independent_levels,
    independent_pixels,
)
from aevb.report.some_rows import some
from aevb.report.table_measures import measure_table

NUM_SAMPLES = 10  # L of the held-out bound
# Rows for log p(x): as many values as in 100 images of MNIST, at least 100 rows and at most 1,000.
LIKELIHOOD_VALUES, LIKELIHOOD_ROWS, LIKELIHOOD_SAMPLES = 78_400, (100, 1000), 500
KERNEL_SAMPLES = 100  # of convolutional models, which take a hundred times as long to decode
NEAREST_ROWS = 100
UNIT = "nats per row"


def measure(model: FittedModel, run_data: RunData, seed: int) -> dict:
    """Return the contents of `metrics.json`, except for versions and machine.

    Args:
        model: The model.
        run_data: Its data. Without training rows, the numbers that need them are left out.
        seed: Random seed of the run.
    """
    origin = {
        "unit": unit(model, run_data),
        "split": run_data.split,
        "binarization": run_data.binarization,
        "seed": seed,
    }
    metrics: dict = {}
    if model.recognition is not None:
        metrics["held_out_lower_bound"] = lower_bound(model, run_data.test) | origin
        if len(run_data.train):
            metrics["training_lower_bound"] = lower_bound(model, some(run_data.train, len(run_data.test))) | origin
            num_rows = metrics["training_lower_bound"]["rows"]
            metrics["training_lower_bound"]["split"] = f"{num_rows:,} of the training rows"
    rows = likelihood_rows(run_data.test)
    estimate = _estimate(model, rows)
    metrics["held_out_log_likelihood"] = _described(model, rows, estimate) | origin
    if len(run_data.train):
        metrics["comparison"] = _comparison(model, run_data, rows if model.recognition is None else some(run_data.test))
        metrics |= _baselines(model, run_data, rows, estimate.values, seed)
    if LIKELIHOODS[model.likelihood].levels:
        for name in ("held_out_lower_bound", "training_lower_bound", "held_out_log_likelihood"):
            if name in metrics:
                metrics[name] |= in_bits(metrics[name], model.matrix.num_columns)
    metrics["active_units"] = _active(model, run_data)
    if run_data.dataset.image_shape and len(run_data.train):
        metrics["nearest_training_row"] = _nearest(model, run_data, seed)
    if model.is_table:
        metrics |= measure_table(model, run_data, seed)
    metrics |= {
        "data": run_data.dataset.name,
        "likelihood": model.likelihood,
        "epochs": model.record.history[-1]["epoch"],
        "stopped_because": model.record.stopped_because,
        "refit_epochs": model.record.refit_epochs,
        "training_seconds": model.record.history[-1]["seconds"],
    }
    are_pictures = run_data.dataset.image_shape is not None
    return metrics | {"warnings": judge(metrics), "hints": hints(model, are_pictures=are_pictures)}


def lower_bound(model: FittedModel, rows: np.ndarray) -> dict:
    """Return the average bound of rows, its two terms, and its standard error over the rows."""
    rows = some(rows)
    terms = likelihoods.lower_bound_terms(model, rows, NUM_SAMPLES)
    bounds = np.asarray(terms.lower_bound, np.float64)
    found = {"value": float(bounds.mean()), "std_error": _std_error(bounds), "median": float(np.median(bounds))}
    found |= {
        name: float(np.mean(getattr(terms, name), dtype=np.float64)) for name in ("reconstruction", "kl_divergence")
    }
    estimator = "sgvb-b" if model.estimator == "sgvb-b" else "sgvb-a"  # also if another bound was maximized
    return found | {"rows": len(rows), "estimator": estimator, "num_samples": NUM_SAMPLES}


def log_likelihood(
    model: FittedModel,
    rows: np.ndarray,
    method: str | None = None,
    num_samples: int | None = None,
    *,
    is_divided: bool = False,
) -> dict:
    """Return the average log p(x) of rows with its errors, and the gap to the bound of the same rows.

    There are two errors: from the choice of rows, and from the sampling of z.

    Args:
        model: The model.
        rows: (n, D).
        method: See :meth:`aevb.VAE.log_likelihood`; None for ``"laplace"``, or ``"importance"`` if z cannot be any
            real vector or the decoder has convolutions. Measured on the 2-D model of `aevb demo` with 500 samples,
            "laplace" differs from quadrature by 0.002 nats on average and 0.02 per row; "importance" by 0.5 and 2.0.
        num_samples: Number of draws of z; None for 500, or 100 if the decoder has convolutions.
        is_divided: Whether processes divide the rows among each other; all must call it then.
    """
    estimate = divided_log_likelihood if is_divided else likelihoods.log_likelihood
    return _described(model, rows, _estimate(model, rows, method, num_samples, estimate))


def in_bits(found: dict, num_columns: int) -> dict:
    """Return an average log-probability of rows as bits per dimension: per number of a row, such as a pixel's colour.

    Example:
        >>> in_bits({"value": -np.log(256) * 12}, 12)
        {'bits_per_dimension': 8.0, 'dimensions': 12}
    """
    return {"bits_per_dimension": float(-found["value"] / (num_columns * np.log(2))), "dimensions": num_columns}


def _estimate(model, rows, method=None, num_samples=None, estimate=likelihoods.log_likelihood) -> LogLikelihood:
    has_kernels = _has_kernels(model)
    if method is None:
        is_real = has_real_support(model.generative.latent_distribution())
        method = "laplace" if is_real and not has_kernels else "importance"
    if num_samples is None:
        num_samples = KERNEL_SAMPLES if has_kernels else LIKELIHOOD_SAMPLES
    return estimate(model, rows, method=method, num_samples=num_samples)


def _has_kernels(model):
    """Return whether the decoder has convolutions, by whose second derivatives "laplace" would take many minutes."""
    return any(np.ndim(leaf) >= 4 for leaf in jax.tree.leaves(model.generative.decoder))


def _described(model, rows, estimate):
    found = {
        "value": estimate.mean,
        "std_error": _std_error(estimate.values),
        "std_error_of_sampling": estimate.std_error,
        "median": float(np.median(estimate.values)),
        "rows": len(rows),
        "method": estimate.method,
        "estimator": f"{estimate.method}, {estimate.effort}",
        "warnings": list(estimate.warnings),
    }
    if model.recognition is not None:
        bounds = np.asarray(likelihoods.lower_bound_terms(model, rows, NUM_SAMPLES).lower_bound, np.float64)
        gaps = np.asarray(estimate.values, np.float64) - bounds
        found |= {"lower_bound": float(bounds.mean()), "gap": float(gaps.mean()), "gap_std_error": _std_error(gaps)}
        found["gap_is_within_error"] = bool(abs(found["gap"]) <= 2 * found["gap_std_error"])
    return found


def likelihood_rows(rows: np.ndarray) -> np.ndarray:
    """Return the rows whose log p(x) is estimated: all of a small table, 100 images of MNIST."""
    return some(rows, int(np.clip(LIKELIHOOD_VALUES // rows.shape[1], *LIKELIHOOD_ROWS)))


def unit(model: FittedModel, run_data: RunData) -> str:
    """Return the unit of the numbers; for a density it includes the units of x, on which the numbers depend."""
    if model.is_table:
        return f"{UNIT}, numbers in the units of the data"
    if not is_density(model):
        return UNIT
    of_x = "x in [0, 1]" if run_data.binarization == "grey" else "x in the units of the data"
    return f"{UNIT}, density of {of_x}"


def is_density(model: FittedModel) -> bool:
    """Whether p(x|z) is a density of real numbers, by a network of aevb or the user's own."""
    if model.arguments.decoder is None:
        return LIKELIHOODS[model.likelihood].density
    z = model.generative.latent_distribution().sample(jax.random.key(0))
    return not model.point_generative.decoder(z).support.is_discrete


def _comparison(model, run_data, rows):
    if model.is_table:
        return {"independent_columns": float(np.mean(independent_columns(model.format.model_columns, rows)))}
    train, rows = as_values(model, run_data.train), as_values(model, rows)
    if is_density(model):
        return {"independent_gaussians": independent_gaussians(train, rows)}
    if model.arguments.decoder is not None or LIKELIHOODS[model.likelihood].counts:
        return {}  # these references are for binary data and grey levels
    if LIKELIHOODS[model.likelihood].levels:
        return {"independent_levels": independent_levels(train, rows)}
    return {"independent_pixels": independent_pixels(train, rows), "grey_level_ceiling": grey_level_ceiling(rows)}


def _baselines(model, run_data, rows, own, seed):
    """Return log p(x) of the same rows under simple models, for small tables of numbers, else nothing."""
    if model.is_table:
        return {}
    train = as_values(model, run_data.train)
    if not (is_density(model) and run_data.num_train == len(train) and is_comparable(train)):
        return {}
    found = fit_baselines(train, as_values(model, rows), num_factors=model.latent_dim, seed=seed)
    values = {
        name: {
            "value": found.means[name],
            "std_error": found.std_errors[name],
            "chosen": found.details.get(name, ""),
            "advantage": float(np.mean(values - own)),  # over this model, row by row
            "advantage_std_error": _std_error(values - own),
        }
        for name, values in found.values.items()
    }
    num_discrete = len(discrete_columns(sample_rows(train)))
    facts = {"rows": len(rows), "unit": unit(model, run_data), "discrete_columns": num_discrete}
    return {"baselines": {"models": values, **facts}}


def _active(model, run_data):
    found = active_latents(model, run_data)
    return {
        "value": found.num_active,
        "of": model.latent_dim,
        "variances": [float(variance) for variance in found.variance],
        "threshold": THRESHOLD,
        **_information(model, some(run_data.test, 1000)),
        "binarization": run_data.binarization,
    }


def _information(model, rows):
    """Return the average KL(q(z_j|x) || p(z_j)) of each latent variable, if they are independent given x."""
    rows = rows[~model.with_holes(rows)]
    if not model.learner.needs_encoder or not len(rows):
        return {}
    x = model.source(rows).take(np.arange(len(rows))) if model.is_table else model.matrix.as_read(rows)
    try:
        divergence = posterior_collapse(model.point_generative, model.recognition, x).divergence
    except (ValueError, NotImplementedError):
        return {}
    most = np.cumsum(np.sort(divergence)[::-1])
    return {
        "nats": [float(value) for value in divergence],
        "carry_90_percent": int(np.searchsorted(most, 0.9 * most[-1])) + 1,
    }


def _nearest(model, run_data, seed):
    """Return how far new and held-out images are from the training images."""
    scale = model.matrix.scale_of(run_data.train)
    new, held_out = (
        coding.sample(model, NEAREST_ROWS, mean=True, random_state=seed),
        as_values(model, some(run_data.test, NEAREST_ROWS)),
    )
    return {
        "samples": float(np.median(nearest_rows(new, run_data.train, scale).distances)),
        "held_out": float(np.median(nearest_rows(held_out, run_data.train, scale).distances)),
        "unit": "median Euclidean distance to the nearest training image; samples are means of p(x|z)",
        "rows": NEAREST_ROWS,
        "binarization": run_data.binarization,
        "seed": seed,
    }


def _std_error(numbers):
    return float(np.std(numbers, ddof=1) / np.sqrt(len(numbers))) if len(numbers) > 1 else float("nan")
