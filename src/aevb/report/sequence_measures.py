"""The numbers in the report of a model of sequences, and how each was computed."""

import math

import numpy as np

from aevb.data.sequence_format import Encoded
from aevb.data.series import SequenceData
from aevb.explorer.views import padded_together
from aevb.fitted import FittedModel
from aevb.fitted.sequences import log_likelihood, lower_bound_terms
from aevb.report.judgement import written
from aevb.report.references import independent_columns

NUM_SAMPLES = 10  # L of the bounds
LIKELIHOOD_SAMPLES = 500
MAX_STEPS = 20_000  # of the sequences whose bound is estimated
LIKELIHOOD_STEPS = 4_000
FAR = 3.0  # nats per step between log p(x) and its bound
MANY_ERRORS = 3  # standard errors, beyond which estimates differ
UNIT = "nats per step"
SUM, MEAN = "sum of all values / sum of all lengths", "mean of each sequence's value per step"


def measure_sequences(model: FittedModel, data: SequenceData, seed: int) -> dict:
    """Return the contents of `metrics.json`, except for versions and machine; all values are in nats per step.

    Args:
        model: The model.
        data: Its sequences. If none was held out, the numbers are those of training sequences, with a warning.
        seed: Random seed of the run.
    """
    origin = {"unit": UNIT, "split": data.split, "seed": seed}
    test, train = some_steps(data.test, MAX_STEPS), None
    if data.train is not None and data.is_held_out:
        train = data.train.some(np.arange(min(len(test.lengths), len(data.train.lengths))))
        train = padded_together(train, int(test.lengths.max()))
    test = padded_together(test, 0 if train is None else int(train.lengths.max()))  # one program for both
    bound, bounds = _lower_bound(model, test)
    metrics: dict = {"estimator": "SequenceVAE", "held_out": data.is_held_out, "lower_bound": bound | origin}
    metrics["lower_bound_per_sequence"] = _per_sequence(bounds, test.lengths) | origin
    if train is not None:
        metrics["training_lower_bound"] = _lower_bound(model, train)[0] | origin
        metrics["training_lower_bound"]["split"] = "training sequences"
    alone = independent_columns(model.format.model_columns, np.concatenate(test.values))
    alone = np.add.reduceat(alone, np.cumsum(test.lengths) - test.lengths)
    metrics["log_likelihood"] = _log_likelihood(model, test, bounds, alone) | origin
    metrics["independent_columns"] = _ratio(alone, test.lengths) | origin
    history = model.record.history[-1]
    metrics |= {
        "data": data.title,
        "epochs": history["epoch"],
        "stopped_because": model.record.stopped_because,
        "training_seconds": history["seconds"],
    }
    return metrics | {"warnings": _judge(metrics)}


def some_steps(encoded: Encoded, most: int) -> Encoded:
    """Return as many of the first sequences as have at most this many steps together, at least one."""
    return encoded.some(np.arange(max(1, int(np.searchsorted(np.cumsum(encoded.lengths), most, side="right")))))


def _ratio(values, lengths):
    """Return the sum of values over the sum of lengths, with the standard error of such a ratio over sequences."""
    n, values = len(lengths), np.asarray(values, np.float64)
    ratio = values.sum() / lengths.sum()
    error = np.sqrt(n / (n - 1) * np.sum((values - ratio * lengths) ** 2)) / lengths.sum() if n > 1 else float("nan")
    counts = {"sequences": n, "steps": int(lengths.sum())}
    return {"value": float(ratio), "std_error": float(error), "convention": SUM, **counts}


def _per_sequence(bounds, lengths):
    values = bounds / lengths
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return {"value": float(values.mean()), "std_error": float(error), "convention": MEAN, "sequences": len(values)}


def _lower_bound(model, encoded):
    terms = lower_bound_terms(model, encoded, NUM_SAMPLES)
    bounds = np.asarray(terms.lower_bound, np.float64)
    found = _ratio(bounds, encoded.lengths)
    for name in ("reconstruction", "kl_divergence"):
        found[name] = float(np.sum(getattr(terms, name), dtype=np.float64) / encoded.lengths.sum())
    estimator = "sgvb-b" if model.estimator == "sgvb-b" else "sgvb-a"  # also if another bound was maximized
    return found | {"estimator": estimator, "num_samples": NUM_SAMPLES}, bounds


def _log_likelihood(model, test, bounds, alone):
    some = some_steps(test, LIKELIHOOD_STEPS)
    estimate = log_likelihood(model, some, "importance", LIKELIHOOD_SAMPLES)
    if estimate.warnings:  # too low; so are those of particle filters on average, and the higher one is closer
        filtered = log_likelihood(model, some, "particle-filter", LIKELIHOOD_SAMPLES)
        estimate = max(estimate, filtered, key=lambda found: float(np.sum(found.values)))
    num, steps = len(some.lengths), some.lengths.sum()
    sampling = float(np.sqrt(np.sum(np.square(estimate.std_errors))) / steps)
    return _ratio(estimate.values, some.lengths) | {
        "std_error_of_sampling": sampling,
        "method": estimate.method,
        "estimator": f"{estimate.method}, {estimate.effort}",
        "lower_bound": float(bounds[:num].sum() / steps),
        "lower_bound_std_error_of_sampling": _bound_error(model, some, bounds[:num]) / steps,
        "independent_columns": float(alone[:num].sum() / steps),
        "warnings": list(estimate.warnings),
    }


def _bound_error(model, encoded, bounds):
    """Return the standard error of the sum of bounds, (n,), from their draws: by those of another seed."""
    others = lower_bound_terms(model, encoded, NUM_SAMPLES, random_state=model.seed + 1).lower_bound
    return float(np.sqrt(np.sum((others - bounds) ** 2) / 2))


def _judge(metrics):
    found, like_for_like = [], metrics["log_likelihood"]  # of the same steps, which may be fewer than those above
    own, alone = max(like_for_like["value"], like_for_like["lower_bound"]), like_for_like["independent_columns"]
    if not metrics["held_out"] and metrics["lower_bound"]["sequences"] == 1:
        found.append(
            "There is one sequence, and the model was trained on all of it, so these numbers are too good. To judge "
            "forecasts, leave out the last part of the sequence and compare them with it."
        )
    elif not metrics["held_out"]:
        found.append(
            "No sequence was held out, so these numbers are those of sequences that the model was trained on: they are "
            "too good. Give more sequences, or a larger share of them to hold out (--test-fraction)."
        )
    far = like_for_like["value"] - like_for_like["lower_bound"]
    if far > FAR:
        found.append(
            f"q(z|x) is far from the posterior: the bound is {written(far, 1)} nats per step below log p(x). States "
            "and reconstructions come from q; do not rely on them. Forecasts start from a particle filter where it is "
            "closer. Train for longer, or with a linear transition."
        )
    if not own >= alone:
        found.append(
            "This model is worse than independent columns and steps, which use no states: "
            f"{written(own, 2)} against {written(alone, 2)} nats per step. Do not rely on it. Train for longer, or try "
            "other settings."
        )
    return found


def ranking(metrics: dict) -> tuple[str, list[dict]]:
    """Return a title, and log p(x) of this model and of a simple one, worst first, of the same sequences."""
    own = metrics["log_likelihood"]
    entries = [
        {"words": f"this model, by {method_words(own)}", "value": own["value"], "std_error": own["std_error"]},
        {
            "words": "independent columns and steps, no states",
            "value": own["independent_columns"],
            "std_error": None,
        },
    ]
    kept = "held-out" if metrics["held_out"] else "training"
    title = f"log p(x) of {own['sequences']:,} {kept} sequence{'s' * (own['sequences'] != 1)}, {UNIT} ({SUM})"
    return title, sorted(entries, key=lambda entry: entry["value"])


def method_words(estimate: dict) -> str:
    """Return how log p(x) was estimated, in words."""
    return estimate["method"].replace("importance", "importance sampling").replace("-", " ")


def bound_words(metrics: dict) -> str:
    """Return a sentence about the lower bound, which may be far below log p(x)."""
    own = metrics["log_likelihood"]
    bound = f"Training maximizes a lower bound of log p(x), here {written(own['lower_bound'], 3)}"
    if own["lower_bound"] > own["value"]:
        errors = [own.get(name) or 0.0 for name in ("std_error_of_sampling", "lower_bound_std_error_of_sampling")]
        if own["lower_bound"] - own["value"] > MANY_ERRORS * math.hypot(*errors):
            return f"{bound}, which is above this estimate by more than their sampling errors: the estimate is too low."
        return f"{bound}, which equals this estimate within their sampling errors."
    return f"{bound}, lower by how far q(z|x) is from the posterior."
