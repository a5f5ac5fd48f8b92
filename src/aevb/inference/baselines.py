"""Simple models of the same rows: log p(x) of independent columns, PCA, factor analysis and mixtures.

A deep model of a small table should beat these to be worth using. All of them are scikit-learn's, fitted to the same
training rows and evaluated by log p(x) of the same test rows in the units of the data.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from aevb.models.cross_validation import NUM_FOLDS, best_candidate, fitting_small_models

MAX_CELLS = 10**6  # of training data; beyond that the cubic cost per fold is high, and a deep model makes sense
MAX_COLUMNS = 100
COMPONENTS = (1, 2, 4, 8, 16, 32)  # candidates for the number of factors
MIXTURE_SIZES = (1, 2, 4, 8)


@dataclass(frozen=True, repr=False)
class Comparison:
    """Log p(x) of test rows under several models, in nats per row, in the units of the data.

    Args:
        values: log p(x) of each test row, (n,), by the name of the model.
        details: What was selected for a model on the training rows, such as ``"4 factors"``; may be empty.

    Example:
        >>> Comparison({"this model": np.array([-3.0, -4.0])}, {"this model": ""})
        log p(x) of 2 rows, nats per row:
           -3.50 +- 0.35  this model
    """

    values: dict[str, np.ndarray]
    details: dict[str, str]

    @property
    def means(self) -> dict[str, float]:
        """Average over the test rows, by name."""
        return {name: float(np.mean(values)) for name, values in self.values.items()}

    @property
    def std_errors(self) -> dict[str, float]:
        """Standard error of the average over the test rows, by name."""
        return {name: float(np.std(values) / np.sqrt(len(values))) for name, values in self.values.items()}

    def __repr__(self) -> str:
        lines = [f"log p(x) of {len(next(iter(self.values.values()))):,} rows, nats per row:"]
        for name, mean in self.means.items():
            detail = f" ({self.details[name]})" if self.details.get(name) else ""
            lines.append(f"{mean:8.2f} +- {self.std_errors[name]:.2f}  {name}{detail}")
        return "\n".join(lines)


def is_comparable(train: np.ndarray) -> bool:
    """Whether the baselines apply to these data: a small table without missing values or constant columns.

    Example:
        >>> is_comparable(np.eye(20)), is_comparable(np.zeros((20, 2))), is_comparable(np.ones((20, 784)))
        (True, False, False)
    """
    num_rows, num_columns = np.shape(train)
    is_small = num_rows * num_columns <= MAX_CELLS and num_columns <= MAX_COLUMNS and num_rows >= 2 * NUM_FOLDS
    return bool(is_small and np.isfinite(train).all() and (np.ptp(np.asarray(train, np.float64), axis=0) > 0).all())


def fit_baselines(train: np.ndarray, test: np.ndarray, *, num_factors: int | None = None, seed: int = 0) -> Comparison:
    """Fit simple models to the training rows, and return log p(x) of the test rows.

    They are independent Gaussian columns; probabilistic PCA and factor analysis, each with the number of factors
    selected by cross-validation on the training rows; factor analysis with `num_factors`, if given; and a Gaussian
    mixture, whose size and covariance type are selected in the same way. They are fitted to standardized columns; the
    densities are in the units of the data.

    Args:
        train: (N, D), real numbers, see :func:`is_comparable`.
        test: (n, D).
        num_factors: J of the model they are compared with.
        seed: Random seed of the folds and of the mixtures' initialization.

    Returns:
        A :class:`Comparison` with the names ``"independent columns"``, ``"PCA"``, ``"factor analysis"``,
        ``"factor analysis, J factors"`` and ``"Gaussian mixture"``. If J factors are the best number, both factor
        analyses are the same model, which then appears once, as ``"factor analysis, J factors"``.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X = load_iris().data
        >>> round(fit_baselines(X[::2], X[1::2]).means["independent columns"], 2)
        -4.94
    """
    from sklearn.mixture import GaussianMixture

    train, test = np.asarray(train, np.float64), np.asarray(test, np.float64)
    mean, std = train.mean(axis=0), train.std(axis=0)
    train, test = (train - mean) / std, (test - mean) / std
    factor_counts = [k for k in COMPONENTS if k < min(train.shape[1], len(train) * (NUM_FOLDS - 1) // NUM_FOLDS)]
    factor_counts = factor_counts or [1]
    mixtures = [
        GaussianMixture(size, covariance_type=kind, reg_covar=1e-4, random_state=seed)
        for kind in ("full", "diag")
        for size in MIXTURE_SIZES
        if size * 5 <= len(train)
    ]
    models = {"PCA": [_pca(k) for k in factor_counts], "factor analysis": [_factor_analysis(k) for k in factor_counts]}
    same = None
    if num_factors is not None:
        same = _factor_analysis(min(num_factors, train.shape[1]))
        models[f"factor analysis, {_detail(same)}"] = [same]
    models["Gaussian mixture"] = mixtures
    values = {"independent columns": _independent(train, test)}
    details = {"independent columns": ""}
    with fitting_small_models():
        for name, candidates in models.items():
            best = best_candidate(candidates, train, _score, seed)
            if name.startswith("factor"):
                best.set_params(max_iter=3000, tol=1e-4)  # to convergence; comparing folds needs less precision
            values[name] = best.fit(train).score_samples(test)
            details[name] = "as many as this model" if best is same else _chosen(best, candidates)
    if same is not None and len(factor_counts) > 1 and details["factor analysis"].startswith(f"{_detail(same)},"):
        chosen = details.pop("factor analysis").partition(", ")[2]
        del values["factor analysis"]
        details[f"factor analysis, {_detail(same)}"] = f"as many as this model, and {chosen}"
    in_units_of_data = np.sum(np.log(std))
    return Comparison({name: value - in_units_of_data for name, value in values.items()}, details)


def _pca(num_factors):
    from sklearn.decomposition import PCA

    return PCA(n_components=num_factors)


def _factor_analysis(num_factors):
    from sklearn.decomposition import FactorAnalysis

    return FactorAnalysis(n_components=num_factors, svd_method="lapack", max_iter=200)


def _independent(train, test):
    variance = train.var(axis=0)
    squares = (test - train.mean(axis=0)) ** 2 / variance
    return -0.5 * np.sum(squares + np.log(2 * np.pi * variance), axis=1)


def _score(model, train, test):
    """Return the average log p(x) of test rows; minus infinity if the model cannot be fitted to the training rows."""
    from sklearn import clone

    fresh: Any = clone(model)
    try:
        return fresh.fit(train).score(test)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
        return -np.inf


def _chosen(model, candidates):
    """Return which of the candidates was selected, in words; nothing if there is only one."""
    if len(candidates) == 1:
        return ""
    of = "" if hasattr(model, "covariance_type") else f"best of 1-{candidates[-1].n_components} "
    return f"{_detail(model)}, {of}by cross-validation"


def _detail(model):
    if hasattr(model, "covariance_type"):
        size = model.n_components
        return f"{size} component{'s' * (size != 1)}, {model.covariance_type} covariance"
    return f"{model.n_components} factor{'s' * (model.n_components != 1)}"
