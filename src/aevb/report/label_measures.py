"""How good predictions are, and whether their probabilities can be believed."""

from typing import Any, NamedTuple

import numpy as np

from aevb.arrays import num_rows
from aevb.data.label_data import (
    CLASSIFIER,
    CONDITIONAL,
    HELD_OUT,
    REGRESSOR,
    TRAINING,
    LabelData,
    judged,
    kind_of_labels,
)
from aevb.fitted import FittedModel, labels, likelihoods, prediction
from aevb.models import Datapoint
from aevb.report.label_baselines import errors_of_means, label_shares, reference_rows, without_inputs_labels

MAX_ROWS = 2000  # by which a model is judged
FEW_ROWS = 50  # below which the report says how uncertain its numbers are
NUM_BINS = 10
NUM_CHANCES = 200  # simulations of a calibrated classifier
NUM_DRAWS = 500  # of each target
LIKELIHOOD_SAMPLES = 500
LEVEL = 0.9  # of intervals
ESTIMATORS = {CLASSIFIER: "VAEClassifier", REGRESSOR: "VAERegressor", CONDITIONAL: "VAE"}


class Reliability(NamedTuple):
    """Rows by the probability of their most probable label, in bins of equal width."""

    counts: np.ndarray  # (B,), rows in each bin
    confidence: np.ndarray  # (B,), mean probability of the predicted label; NaN in empty bins
    accuracy: np.ndarray  # (B,), share of rows with that label
    error: float  # expected calibration error
    by_chance: float  # the same, if the probabilities were right


def reliability(probabilities: np.ndarray, places: np.ndarray, seed: int = 0) -> Reliability:
    r"""Compare the probabilities of predicted labels with how often they are right.

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{n} |\mathrm{accuracy}_b - \mathrm{confidence}_b|

    Even right probabilities have a positive error in a finite number of rows: `by_chance` is its average if labels
    were drawn from them (Guo et al., "On calibration of modern neural networks", 2017, section 2).

    Args:
        probabilities: (n, K).
        places: (n,), the place of each row's own label.
        seed: Of the simulated labels.

    Example:
        >>> found = reliability(np.array([[0.9, 0.1], [0.7, 0.3]]), np.array([0, 1]))
        >>> round(found.error, 3)  # 0.5 * |1 - 0.9| + 0.5 * |0 - 0.7|
        0.4
    """
    confidence, predicted = probabilities.max(axis=1), probabilities.argmax(axis=1)
    bins = np.minimum((confidence * NUM_BINS).astype(int), NUM_BINS - 1)
    counts = np.bincount(bins, minlength=NUM_BINS)

    def gaps(is_right):
        return np.abs(np.bincount(bins, is_right - confidence, NUM_BINS)).sum() / len(confidence)

    is_right = (predicted == places).astype(float)
    rng = np.random.default_rng(seed)
    chances = [gaps((rng.random(len(confidence)) < confidence).astype(float)) for _ in range(NUM_CHANCES)]
    with np.errstate(invalid="ignore"):
        means, shares = (np.bincount(bins, values, NUM_BINS) / counts for values in (confidence, is_right))
    return Reliability(counts, means, shares, float(gaps(is_right)), float(np.mean(chances)))


def probability_transforms(draws: np.ndarray, values: np.ndarray) -> np.ndarray:
    r"""Return the probability that the model gives to targets below the observed ones, (n, T); ties count half.

    .. math:: u = P(Y < y | x) + P(Y = y | x) / 2

    If the predictive distributions are right, these are uniform, whatever the distributions are.

    Args:
        draws: (L, n, T), of the targets.
        values: (n, T), observed ones.
    """
    return np.mean((draws < values) + 0.5 * (draws == values), axis=0)


def uniformity_error(transforms: np.ndarray) -> float:
    """Return the mean distance between levels and the shares of probability transforms below them, (n,).

    Example:
        >>> uniformity_error(np.full(1000, 0.5))  # all in the middle
        0.25
    """
    levels = (np.arange(1000) + 0.5) / 1000
    below = np.searchsorted(np.sort(transforms), levels, side="right") / len(transforms)
    return float(np.round(np.mean(np.abs(below - levels)), 12))


def measure_labels(model: FittedModel, data: LabelData, seed: int) -> dict[str, Any]:
    """Return the contents of `metrics.json`, except for versions and machine.

    Args:
        model: The model.
        data: Its data.
        seed: Random seed of the run.
    """
    kind = kind_of_labels(model)
    assert kind is not None
    rows, which = judged(model, data, MAX_ROWS)
    reference, of = reference_rows(model, data, rows)
    found = {CLASSIFIER: _classifier, REGRESSOR: _regressor}.get(kind, _conditional)(model, rows, seed, reference)
    if "without_inputs" in found:
        found["without_inputs"]["of"] = of
    history = model.record.history
    if num_rows(rows) < FEW_ROWS:
        found["warnings"].insert(0, _few(num_rows(rows), found))
    return {
        "kind": kind,
        "estimator": ESTIMATORS[kind],
        "rows": num_rows(rows),
        "judged_by": which,
        "held_out": which == HELD_OUT,
        "split": "training rows: no other row has a known label or target" if which == TRAINING else data.split,
        "seed": seed,
        **found,
        "epochs": history[-1]["epoch"],
        "stopped_because": model.record.stopped_because,
        "refit_epochs": model.record.refit_epochs,
        "training_seconds": history[-1]["seconds"],
    }


def _classifier(model, rows, seed, reference):
    probabilities, places = labels.label_probabilities(model, rows.values), rows.given[:, 0].astype(int)
    found = reliability(probabilities, places, seed)
    losses = -np.log(np.maximum(probabilities[np.arange(len(places)), places], 1e-12))
    is_right = probabilities.argmax(axis=1) == places
    shares = label_shares(reference.given[:, 0], probabilities.shape[1])
    simple = without_inputs_labels(places, shares)
    gains = is_right.astype(float) - (places == shares.argmax())
    calibration = {
        "value": found.error,
        "by_chance": found.by_chance,
        "bins": NUM_BINS,
        "estimator": f"of the most probable label, {NUM_BINS} bins of equal width",
    }
    return {
        "accuracy": float(is_right.mean()),
        "accuracy_interval": list(share_interval(is_right.sum(), len(is_right))),
        "without_inputs": simple,
        "log_loss": float(losses.mean()),
        "log_loss_std_error": _std_error(losses),
        "expected_calibration_error": calibration,
        "warnings": _doubts(
            found.error > 2 * found.by_chance + 0.05, len(gains) >= FEW_ROWS and gains.mean() < -2 * _std_error(gains)
        ),
    }


def _doubts(is_miscalibrated, is_useless):
    doubts = []
    if is_useless:
        doubts.append(
            "Always predicting the most frequent label would be right more often, by more than two standard errors. "
            "Train for longer (max_epochs), or try other settings."
        )
    if is_miscalibrated:
        doubts.append(
            "The probabilities are not calibrated: they differ from how often the label is right by more than chance "
            "explains. Do not use them as probabilities."
        )
    return doubts


def _few(num, found):
    """Return a sentence about how little these rows tell."""
    said = f"Only {num} rows have a label or target to judge by, so that these numbers are uncertain"
    if "accuracy" not in found:
        return f"{said}. Hold out more rows."
    low, high = found["accuracy_interval"]
    return f"{said}: the share of correct predictions is between {low:.0%} and {high:.0%} (95%). Hold out more rows."


def share_interval(count: float, num: int, z: float = 1.96) -> tuple[float, float]:
    r"""Return a 95% interval of a probability, of which an event occurred so many times in so many trials.

    .. math:: \frac{k + z^2/2}{n + z^2} \pm \frac{z}{n + z^2} \sqrt{\frac{k (n - k)}{n} + \frac{z^2}{4}}

    Unlike plus or minus two standard errors it is never empty, nor outside of [0, 1] (Wilson, "Probable inference, the
    law of succession, and statistical inference", 1927).

    Args:
        count: k.
        num: n.
        z: Standard normal quantile, 1.96 for 95%.

    Example:
        >>> [round(end, 3) for end in share_interval(17, 17)]
        [0.816, 1.0]
    """
    middle, half = count + z**2 / 2, z * np.sqrt(count * (num - count) / num + z**2 / 4)
    return max(float((middle - half) / (num + z**2)), 0.0), min(float((middle + half) / (num + z**2)), 1.0)


def _regressor(model, rows, seed, reference):
    estimate = likelihoods.log_likelihood(model, rows, method="importance", num_samples=LIKELIHOOD_SAMPLES)
    found: dict[str, Any] = {
        "log_prob": float(estimate.mean),
        "log_prob_std_error": _std_error(estimate.values),
        "how": f"{estimate.method}, {estimate.effort}",
        "unit": "nats per row, in the units of the targets",
        "targets": [],
        "warnings": [],
    }
    values, draws = observed_targets(model, rows), target_draws(model, rows, seed)
    means, transforms = prediction.predictive_mean(model, rows.given), probability_transforms(draws, values)
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    simple = errors_of_means(model, rows, reference)
    for place, column in enumerate(model.format.columns):
        errors, inside = means[:, place] - values[:, place], (values >= low) & (values <= high)
        target = {
            "name": str(column.name),
            "root_mean_squared_error": float(np.sqrt(np.mean(errors**2))),
            "std": float(values[:, place].std()),
            "error_of_the_mean": float(simple[place]),
            "within_90_percent_interval": float(inside[:, place].mean()),
            "within_90_percent_interval_interval": list(share_interval(inside[:, place].sum(), len(inside))),
            "quantile_error": uniformity_error(transforms[:, place]),
        }
        found["targets"].append(target)
    # The first target's, as of a model with only one.
    names = ("root_mean_squared_error", "within_90_percent_interval", "within_90_percent_interval_interval")
    first = {name: found["targets"][0][name] for name in names}
    return found | first | {"without_inputs": {"root_mean_squared_error": float(simple[0])}}


def observed_targets(model: FittedModel, rows: Datapoint) -> np.ndarray:
    """Return the targets in the user's units, (n, T)."""
    return prediction.in_units(model, np.asarray(rows.values))


def target_draws(model: FittedModel, rows: Datapoint, seed: int) -> np.ndarray:
    """Return draws of the targets in the user's units, (L, n, T)."""
    return prediction.predictive_draws(model, rows.given, NUM_DRAWS, random_state=seed)


def _conditional(model, rows, seed, _):
    bounds = _bounds(model, rows)
    shuffled = np.random.default_rng(seed).permutation(len(bounds))
    others = _bounds(model, Datapoint(rows.values, given=rows.given[shuffled]))
    estimate = likelihoods.log_likelihood(model, rows, method="importance", num_samples=LIKELIHOOD_SAMPLES)
    found = {
        "lower_bound": float(bounds.mean()),
        "lower_bound_std_error": _std_error(bounds),
        "log_likelihood": float(estimate.mean),
        "log_likelihood_std_error": _std_error(estimate.values),
        "how": f"{estimate.method}, {estimate.effort}",
        "with_other_y": float(others.mean()),
        "unit": "nats per row",
        "warnings": [],
    }
    if others.mean() >= bounds.mean():
        found["warnings"].append(
            "The model ignores y: with the y of other rows, the bound is as high. y may have nothing to do with the "
            "rows; otherwise train for longer."
        )
    return found


def _bounds(model, rows):
    return np.asarray(likelihoods.lower_bound_terms(model, rows, 10).lower_bound, np.float64)


def _std_error(numbers):
    numbers = np.asarray(numbers, np.float64)
    return float(np.std(numbers, ddof=1) / np.sqrt(len(numbers))) if len(numbers) > 1 else float("nan")
