"""Predictive densities of five regression sets on the published splits: `VAERegressor` and networks without z.

The measure is the mean of log p(y|x) of the test rows, in nats and in the units of y. The published figures are those
of MC dropout (Gal and Ghahramani, "Dropout as a Bayesian approximation", 2016). The Gaussian network has the same
hidden layers and the same training as the regressor, a mean and a variance that depend on x, and no z.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from aevb.arguments import check_parameter
from aevb.data.download import DataFileError, find
from aevb.data.given import learn_given
from aevb.experiments.result_file import ResultFile, markdown_table, stored_results
from aevb.experiments.settings import PROFILES, Watch
from aevb.fitted.model import covariates_of
from aevb.models import GaussianMLP, standard_normal
from aevb.networks import initialize
from aevb.training.budget import prior_precision
from aevb.vae import VAE, VAERegressor

FOLDER = "uci_regression"  # below AEVB_DATA
NUM_SAMPLES = 1000  # of z per row, in the estimate of log p(y|x)
NUM_SPLITS = {"tiny": 1, "quick": 1, "standard": 5, "paper": 20}
MAX_EPOCHS: dict[str, Any] = {"tiny": 2}
HIDDEN = (50, 50)
CORE_SECONDS = 40.0  # for one fit and its evaluation, about


class Case(NamedTuple):
    """A regression set."""

    file: str
    published: float | None  # mean of log p(y|x) of MC dropout
    std_error: float = 0.0
    step: float = 0.0  # the distance of the target's values, to dequantize them


CASES = {
    "Boston": Case("bostonHousing", -2.40, 0.04),
    "energy": Case("energy", -1.21, 0.01),
    "power": Case("power-plant", -2.80, 0.01),
    "protein": Case("protein-tertiary-structure", -2.87, 0.00),
    "wine": Case("wine-quality-red", -0.93, 0.01),
    "wine, dequantized": Case("wine-quality-red", None, step=1.0),
}


class Split(NamedTuple):
    """Rows for training and for testing."""

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def read_split(case: Case, number: int) -> Split:
    """Return a published split.

    The quality of a wine is a whole number, which has no density: a model that learns these numbers reaches any log p.
    The published figure is a density at whole numbers all the same. A second case compares methods where such spikes
    do not pay: the target is dequantized, by uniform noise of the width of a step, the same for all methods.

    Raises:
        DataFileError: The file is not in the folder of ``AEVB_DATA``.
    """
    path = find(FOLDER, f"{case.file}.npz")
    if path is None:
        raise DataFileError(
            f"{FOLDER}/{case.file}.npz: not found. Set AEVB_DATA to a folder that contains {FOLDER}/, with the arrays "
            "data, features and target (columns), and test_0, test_1, ... (rows of the published splits)."
        )
    with np.load(path) as arrays:
        data, features, target = arrays["data"], arrays["features"], int(arrays["target"])
        test = arrays[f"test_{number}"]
    x, y = data[:, features].astype(float), data[:, target].astype(float)
    if case.step:
        y = y + case.step * np.random.default_rng(0).uniform(-0.5, 0.5, len(y))
    is_test = np.zeros(len(data), bool)
    is_test[test] = True
    return Split(x[~is_test], y[~is_test], x[is_test], y[is_test])


def by_regressor(split: Split, seed: int, **setting: Any) -> np.ndarray:
    """Return log p(y|x) of the test rows by `VAERegressor` with default settings."""
    model = VAERegressor(random_state=seed, progress=False, **setting).fit(split.x, split.y)
    return model.log_prob(split.test_x, split.test_y, num_samples=NUM_SAMPLES).values


class _WithoutLatents(eqx.Module):
    """p(y|x) as a decoder that ignores z."""

    conditional: Any

    def __call__(self, z, given):
        return self.conditional(given)


class _Prior(eqx.Module):
    """q(z|x, y) = p(z), which makes the bound log p(y|x) itself."""

    def __call__(self, x):
        return standard_normal(1)


def by_gaussian_network(split: Split, seed: int, **setting: Any) -> np.ndarray:
    """Return log p(y|x) of the test rows by a Gaussian whose mean and variance are a network of x."""
    mean, std = split.y.mean(), split.y.std()
    varies = split.x.std(axis=0) > 0
    offset, scale = split.x[:, varies].mean(axis=0), split.x[:, varies].std(axis=0)
    x, test_x = ((rows[:, varies] - offset) / scale for rows in (split.x, split.test_x))
    read = covariates_of(learn_given(x)[0])  # columns of two values are labels
    assert read is not None
    network = initialize(GaussianMLP(read.size, HIDDEN, 1, "gelu"), jax.random.key(seed))
    parts = {"encoder": _Prior(), "decoder": _WithoutLatents(network)}
    precision = prior_precision(len(split.y), "auto", is_standardized=True)  # as that of the regressor
    options: dict[str, Any] = {"learning_rate": 0.005, "parameter_prior": precision} | setting
    model = VAE(1, conditional=True, **parts, random_state=seed, progress=False, **options)
    model.fit(((split.y - mean) / std)[:, None], x)
    found = model.score_samples(((split.test_y - mean) / std)[:, None], test_x)
    return found - np.log(std)


METHODS: dict[str, Callable[..., np.ndarray]] = {
    "VAERegressor": by_regressor,
    "Gaussian network": by_gaussian_network,
}


def reproduce_regression(
    profile: str,
    folder: Path,
    *,
    seed: int = 0,
    watch: Watch = lambda *_: None,
    processes: int | None = None,
    cases: tuple[str, ...] = tuple(CASES),
) -> list[Path]:
    """Fit each set by each method; write `regression.json` and `regression.md`.

    The file is written after each fit, so an interrupted call resumes at the fit it was in.

    Args:
        profile: One of ``PROFILES``: one split for quick, five for standard, all 20 for paper (protein has five).
        folder: Receives the files.
        seed: Of the methods.
        watch: A function with a method `note`, which is called with the progress.
        processes: How many fits run at a time, see :meth:`ResultFile.add_all`.
        cases: Keys of ``CASES``.

    Returns:
        The paths of the files written.
    """
    check_parameter("profile", profile, choices=PROFILES)
    check_parameter("seed", seed, kind=int, low=0)
    note = getattr(watch, "note", lambda text: None)
    found = ResultFile(folder / "regression.json", _about(profile, seed))
    measures = {
        (name, method, str(number)): partial(_measure, CASES[name], number, method, seed, profile)
        for name in cases
        for number in range(min(NUM_SPLITS[profile], 5 if name == "protein" else 20))
        for method in METHODS
    }
    for (name, method, number), result in found.add_all(measures, processes):
        note(f"{name}, split {number}, {method}: {result['log_likelihood']:.3f} nats")
    return [found.write_summary(summary(found.results)), found.write()]


def regression_core_seconds(profile: str, folder: Path) -> float:
    """Return approximately how long one core needs for the results that are not in the folder yet."""
    results = stored_results(folder / "regression.json")
    done = sum(len(splits) for methods in results.values() for splits in methods.values())
    return max(len(CASES) * len(METHODS) * NUM_SPLITS[profile] - done, 0) * CORE_SECONDS


def _measure(case, number, method, seed, profile):
    split = read_split(case, number)
    setting = {"max_epochs": MAX_EPOCHS[profile]} if profile in MAX_EPOCHS else {}
    found = METHODS[method](split, seed, **setting)
    return {"log_likelihood": float(jnp.mean(found)), "num_train": len(split.y), "num_test": len(split.test_y)}


def summary(results: dict[str, Any]) -> str:
    """Return the log-likelihoods as a Markdown table, with standard errors over splits."""
    table: list[list[Any]] = [["set", "rows", "splits", *METHODS, "MC dropout, published"]]
    for name, methods in results.items():
        first = next(iter(next(iter(methods.values())).values()))
        cells: list[Any] = [name, f"{first['num_train']:,} + {first['num_test']:,}"]
        cells.append(max(len(splits) for splits in methods.values()))
        for method in METHODS:
            values = [split["log_likelihood"] for split in methods.get(method, {}).values()]
            error = f" ± {np.std(values, ddof=1) / np.sqrt(len(values)):.2f}" if len(values) > 1 else ""
            cells.append(f"{np.mean(values):.2f}{error}" if values else "")
        case = CASES[name]
        table.append([*cells, "" if case.published is None else f"{case.published:.2f} ± {case.std_error:.2f}"])
    return markdown_table(table)


def _about(profile, seed):
    return {
        "title": "Predictive log-likelihood of regression sets on the published splits",
        "how": f"mean of log p(y|x) of the test rows in nats and in the units of y, by importance sampling with "
        f"{NUM_SAMPLES} samples; wine as a density at whole numbers, as published, and dequantized; default settings, "
        f"hidden layers {HIDDEN}",
        "profile": profile,
        "seed": seed,
    }
