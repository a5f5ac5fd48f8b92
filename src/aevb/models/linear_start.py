"""Initial values in closed form: a Gaussian model starts as the linear model that fits the data best.

Maximum likelihood for a linear-Gaussian model is available in closed form (PCA), or by a few cheap iterations (factor
analysis). A network with pairs of mirrored units computes any linear map exactly, because f(a) - f(-a) = a for these
activations. A deep model can therefore start there, with its latent variables in use, and learn what is not linear.
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
import numpyro.distributions as dist

from aevb.arrays import on_device
from aevb.models.conditionals import Conditional, Rescaled
from aevb.models.cross_validation import NUM_FOLDS, best_candidate, fitting_small_models
from aevb.models.generative import GenerativeModel
from aevb.models.recognition import RecognitionModel
from aevb.networks import MLP

MIRRORED = ("gelu", "relu", "silu", "softplus", "identity")  # activations with f(a) - f(-a) = a, or a multiple of it
MAX_ROWS = 2000  # for fitting the linear model
MAX_FACTOR_ANALYSIS = 100  # columns; with more, its iterations take too long, and PCA is used
PRIOR_ROWS = 0, 1  # candidates for the number of rows with independent columns that factor analysis adds to the data
MIN_VARIANCE = 1e-4  # of the residual of a standardized column


class Weighted(NamedTuple):
    """Rows with weights, and their moments."""

    rows: np.ndarray  # (n, D)
    weights: np.ndarray | None  # (n,); None: they are equal

    def take(self, numbers: np.ndarray) -> "Weighted":
        """Return some of the rows, with their weights."""
        return Weighted(self.rows[numbers], None if self.weights is None else self.weights[numbers])

    @property
    def num_data(self) -> float:
        """N: a row with weight 3 counts as three rows."""
        return len(self.rows) if self.weights is None else self.weights.sum()

    @property
    def mean(self) -> np.ndarray:
        """Mean of each column, (D,)."""
        return np.average(self.rows, axis=0, weights=self.weights)

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the columns, by maximum likelihood, (D, D)."""
        return np.atleast_2d(np.cov(self.rows.T, bias=True, aweights=self.weights))


class LinearModel(NamedTuple):
    """p(z) = N(0, I), p(x|z) = N(W z + b, diag(variances)), whose posterior has a diagonal covariance."""

    weight: np.ndarray  # (D, J), columns orthogonal in the units of the noise
    bias: np.ndarray  # (D,)
    variances: np.ndarray  # (D,)

    @property
    def posterior_precisions(self) -> np.ndarray:
        """Precision of each latent variable given x, (J,)."""
        return 1 + np.sum(self.weight**2 / self.variances[:, None], axis=0)

    def log_prob(self, rows: np.ndarray) -> np.ndarray:
        """Return log p(x) of each row, (n,)."""
        residuals = (rows - self.bias) / np.sqrt(self.variances)
        projections = residuals @ (self.weight / np.sqrt(self.variances)[:, None])  # (n, J)
        squares = np.sum(residuals**2, axis=1) - np.sum(projections**2 / self.posterior_precisions, axis=1)
        log_determinant = np.sum(np.log(2 * np.pi * self.variances)) + np.sum(np.log(self.posterior_precisions))
        return -0.5 * (squares + log_determinant)


def start_linear(
    models: tuple[GenerativeModel, RecognitionModel], rows: np.ndarray, weights: np.ndarray | None = None
) -> tuple[GenerativeModel, RecognitionModel]:
    """Return the models with weights that make them the best linear model of the rows, if possible.

    It is possible for the prior N(0, I), Gaussian encoders and decoders with standardized columns, mirrored
    activations, and hidden layers at least twice as wide as the number of latent variables; other models are returned
    unchanged.

    Args:
        models: The pair (generative, recognition), with initial values.
        rows: (n, D), in the units of the data.
        weights: (n,), of the rows, above 0; None if they are equal.
    """
    generative, recognition = models
    decoder: Any = generative.decoder
    encoder: Any = recognition.encoder
    fits = _fits(decoder) and _fits(encoder) and _is_standard_normal(generative.prior)
    if not fits or len(rows) < 2 * NUM_FOLDS or rows.shape[1] < 2:
        return models
    latent_dim = encoder.conditional.network.layers[-1].weight.shape[0] // 2
    standardized = (rows - np.asarray(decoder.units.loc)) / np.asarray(decoder.units.scale)
    linear = fit_linear(standardized, latent_dim, weights)
    precisions, zeros = linear.posterior_precisions, np.zeros_like
    inverse = (linear.weight / linear.variances[:, None] / precisions).T  # (J, D): the posterior mean is B (x - b)
    maps = {
        "decoder": (np.vstack([linear.weight, zeros(linear.weight)]), [*linear.bias, *np.log(linear.variances)]),
        "encoder": (np.vstack([inverse, zeros(inverse)]), [*(-inverse @ linear.bias), *(-np.log(precisions))]),
    }
    networks = {"decoder": decoder.conditional.network, "encoder": encoder.conditional.network}
    if not all(_is_wide_enough(networks[name], len(precisions)) for name in networks):
        return models
    made = {name: linear_network(networks[name], matrix, np.asarray(bias)) for name, (matrix, bias) in maps.items()}
    generative = eqx.tree_at(lambda model: model.decoder.conditional.network, generative, made["decoder"])
    return generative, eqx.tree_at(lambda model: model.encoder.conditional.network, recognition, made["encoder"])


def _is_standard_normal(prior):
    base: Any = getattr(prior, "base_dist", None)
    is_normal = isinstance(prior, dist.Independent) and isinstance(base, dist.Normal)
    return is_normal and bool(np.all(np.asarray(base.loc) == 0) and np.all(np.asarray(base.scale) == 1))


def _fits(part):
    if not isinstance(part, Rescaled) or not isinstance(part.conditional, Conditional):
        return False
    network = part.conditional.network
    is_mirrored = isinstance(network, MLP) and (network.activation in MIRRORED or len(network.layers) == 1)
    return is_mirrored and part.conditional.family == "gaussian"


def _is_wide_enough(network, rank):
    return all(layer.weight.shape[0] >= 2 * rank for layer in network.layers[:-1])


def fit_linear(rows: np.ndarray, latent_dim: int, weights: np.ndarray | None = None) -> LinearModel:
    """Return the linear model that cross-validation on the rows prefers.

    The candidates are PCA and factor analysis, without and with a weak prior, with J factors or half as many.

    Args:
        rows: (n, D), standardized.
        latent_dim: J; unused columns of the weight are zero.
        weights: (n,), above 0, which multiply the terms of the log-likelihood; None if they are equal.
    """
    data = Weighted(np.asarray(rows, np.float64), weights)
    if len(rows) > MAX_ROWS:
        data = data.take(np.random.default_rng(0).choice(len(rows), MAX_ROWS, replace=False))
    rows = data.rows
    most = min(latent_dim, rows.shape[1] - 1, len(rows) - len(rows) // NUM_FOLDS - 1)
    kinds = [_pca]
    if rows.shape[1] <= MAX_FACTOR_ANALYSIS:
        kinds += [partial(_factor_analysis, prior_rows=number) for number in PRIOR_ROWS]
    candidates = [(kind, count) for kind in kinds for count in sorted({most, max(most // 2, 1)})]
    with fitting_small_models():
        best, count = best_candidate(candidates, np.arange(len(rows)), partial(_score, data))
        linear = best(data, count, max_iter=2000)
    unused = np.zeros((rows.shape[1], latent_dim - linear.weight.shape[1]))
    return linear._replace(weight=np.hstack([linear.weight, unused]))


def _score(data, candidate, train, test):
    kind, count = candidate
    linear, test = kind(data.take(train), count, max_iter=200), data.take(test)  # comparing folds needs less precision
    return np.average(linear.log_prob(test.rows), weights=test.weights)


def _pca(data, count, max_iter):
    from sklearn.decomposition import PCA

    if data.weights is None:
        fitted: Any = PCA(count).fit(data.rows)
        noise, variances, axes = fitted.noise_variance_, fitted.explained_variance_, fitted.components_.T
    else:  # which scikit-learn's PCA does not take
        variances, axes = np.linalg.eigh(data.covariance * data.num_data / max(data.num_data - 1, 1))
        variances, axes = variances[::-1], axes[:, ::-1]
        noise = variances[count : min(data.rows.shape)].mean()
        variances, axes = variances[:count], axes[:, :count]
    lengths = np.sqrt(np.maximum(variances - noise, 0))
    return _diagonal(axes * lengths, data.mean, np.full(data.rows.shape[1], noise))


def _factor_analysis(data, count, max_iter, prior_rows):
    """Return factor analysis of the rows, with this many additional rows whose columns are independent.

    These are a weak prior: with few rows, maximum likelihood often gives some columns no noise.
    """
    from sklearn.decomposition import FactorAnalysis

    N, data_dim, covariance = data.num_data, data.rows.shape[1], data.covariance
    covariance = (N * covariance + prior_rows * np.diag(np.diag(covariance))) / (N + prior_rows)
    variances, axes = np.linalg.eigh(covariance)
    half = np.sqrt(data_dim * np.maximum(variances, 0))[:, None] * axes.T
    rows_with_covariance = np.vstack([half, -half])  # (2 D, D): all that factor analysis uses of the rows
    fitted: Any = FactorAnalysis(count, svd_method="lapack", max_iter=max_iter, tol=1e-4).fit(rows_with_covariance)
    return _diagonal(fitted.components_.T, data.mean, fitted.noise_variance_)


def _diagonal(weight, bias, variances) -> LinearModel:
    """Return the model rotated so that the posterior's covariance is diagonal, which does not change p(x)."""
    variances = np.maximum(variances, MIN_VARIANCE)
    left, singular_values, _ = np.linalg.svd(weight / np.sqrt(variances)[:, None], full_matrices=False)
    return LinearModel(np.sqrt(variances)[:, None] * left * singular_values, bias, variances)


def linear_network(network, matrix: np.ndarray, bias: np.ndarray):
    """Return a network of the same shape that computes ``matrix @ x + bias``.

    In each hidden layer, the first units are pairs that pass on the relevant coordinates of x; the others keep their
    initial values, and the last layer does not read them yet.

    Args:
        network: An MLP with an activation in ``MIRRORED``, or without hidden layers.
        matrix: (out, in).
        bias: (out,).
    """
    left, singular_values, right = np.linalg.svd(matrix, full_matrices=False)
    rank = max(int(np.sum(singular_values > 1e-9)), 1)
    both = np.hstack([np.eye(rank), -np.eye(rank)])  # reads pairs; its transpose writes them
    gain = 2.0 if network.activation == "identity" else 1.0
    layers = [(np.array(layer.weight, np.float64), np.array(layer.bias)) for layer in network.layers]
    values = []
    for number, (weight, start) in enumerate(layers):
        is_first, is_last = number == 0, number == len(layers) - 1
        reads = right[:rank] if is_first else both / gain
        writes = left[:, :rank] * singular_values[:rank] if is_last else both.T
        weight[: len(writes)], start[: len(writes)] = 0, 0
        weight[: len(writes), : reads.shape[1]] = writes @ reads
        values += [weight, np.asarray(bias) if is_last else start]
    arrays = [on_device(np.asarray(value, old.dtype)) for value, old in zip(values, _arrays(network), strict=True)]
    return eqx.tree_at(_arrays, network, arrays)


def _arrays(network):
    return [array for layer in network.layers for array in (layer.weight, layer.bias)]
