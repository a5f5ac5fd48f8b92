"""Initial values in closed form: a Gaussian model starts as the linear model that fits the data best.

Maximum likelihood for a linear-Gaussian model is available in closed form (PCA), or by a few cheap iterations (factor
analysis). A network with pairs of mirrored units computes any linear map exactly, because f(a) - f(-a) = a for these
activations. A deep model can therefore start there, with its codes in use, and learn what is not linear.
"""

import warnings
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from aevb.arrays import on_device
from aevb.models.conditionals import Conditional, Rescaled
from aevb.models.generative import GenerativeModel
from aevb.models.recognition import RecognitionModel
from aevb.networks import MLP

MIRRORED = ("gelu", "relu", "silu", "softplus", "identity")  # activations with f(a) - f(-a) = a, or a multiple of it
NUM_FOLDS = 5
MAX_ROWS = 2000  # for fitting the linear model
MAX_FACTOR_ANALYSIS = 100  # columns; with more, its iterations take too long, and PCA is used
MIN_VARIANCE = 1e-4  # of the residual of a standardized column


class LinearModel(NamedTuple):
    """p(z) = N(0, I), p(x|z) = N(W z + b, diag(variances)), whose posterior has a diagonal covariance."""

    weight: np.ndarray  # (D, J), columns orthogonal in the units of the noise
    bias: np.ndarray  # (D,)
    variances: np.ndarray  # (D,)

    @property
    def posterior_precisions(self) -> np.ndarray:
        """Precision of each latent variable given x, (J,)."""
        return 1 + np.sum(self.weight**2 / self.variances[:, None], axis=0)


def start_linear(
    models: tuple[GenerativeModel, RecognitionModel], rows: np.ndarray
) -> tuple[GenerativeModel, RecognitionModel]:
    """Return the models with weights that make them the best linear model of the rows, if possible.

    It is possible for Gaussian encoders and decoders with standardized columns, mirrored activations, and hidden layers
    at least twice as wide as the number of latent variables; other models are returned unchanged.

    Args:
        models: The pair (generative, recognition), with initial values.
        rows: (n, D), in the units of the data.
    """
    generative, recognition = models
    decoder: Any = generative.decoder
    encoder: Any = recognition.encoder
    if not (_fits(decoder) and _fits(encoder)) or len(rows) < 2 * NUM_FOLDS or rows.shape[1] < 2:
        return models
    latent_dim = encoder.conditional.network.layers[-1].weight.shape[0] // 2
    linear = fit_linear((rows - np.asarray(decoder.units.loc)) / np.asarray(decoder.units.scale), latent_dim)
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


def _fits(part):
    if not isinstance(part, Rescaled) or not isinstance(part.conditional, Conditional):
        return False
    network = part.conditional.network
    is_mirrored = isinstance(network, MLP) and (network.activation in MIRRORED or len(network.layers) == 1)
    return is_mirrored and part.conditional.family == "gaussian"


def _is_wide_enough(network, rank):
    return all(layer.weight.shape[0] >= 2 * rank for layer in network.layers[:-1])


def fit_linear(rows: np.ndarray, latent_dim: int) -> LinearModel:
    """Return factor analysis or PCA, with J factors or half as many, chosen by cross-validation on the rows.

    Args:
        rows: (n, D), standardized.
        latent_dim: J; unused columns of the weight are zero.
    """
    from sklearn.decomposition import PCA, FactorAnalysis
    from sklearn.model_selection import KFold, cross_val_score
    from threadpoolctl import threadpool_limits

    rows = np.asarray(rows, np.float64)
    if len(rows) > MAX_ROWS:
        rows = rows[np.random.default_rng(0).choice(len(rows), MAX_ROWS, replace=False)]
    most = min(latent_dim, rows.shape[1] - 1, len(rows) - len(rows) // NUM_FOLDS - 1)
    counts = sorted({most, max(most // 2, 1)})
    candidates: list = [PCA(count) for count in counts]
    if rows.shape[1] <= MAX_FACTOR_ANALYSIS:
        candidates += [FactorAnalysis(count, svd_method="lapack", max_iter=200) for count in counts]
    folds = KFold(NUM_FOLDS, shuffle=True, random_state=0)
    with warnings.catch_warnings(), threadpool_limits(1):  # small matrices: threads would mostly wait for each other
        warnings.simplefilter("ignore")  # about iterations that did not converge
        scores = [np.mean(cross_val_score(model, rows, cv=folds)) for model in candidates]
        best = candidates[int(np.argmax(scores))]
        if isinstance(best, FactorAnalysis):
            best.set_params(max_iter=2000, tol=1e-4)
        best.fit(rows)
    return _diagonal(best, rows.shape[1], latent_dim)


def _diagonal(fitted, data_dim, latent_dim) -> LinearModel:
    """Return the model rotated so that the posterior's covariance is diagonal, which does not change p(x)."""
    variances = np.maximum(np.broadcast_to(fitted.noise_variance_, data_dim), MIN_VARIANCE)
    weight = fitted.components_.T
    if hasattr(fitted, "explained_variance_"):  # PCA's components have length one
        weight = weight * np.sqrt(np.maximum(fitted.explained_variance_ - fitted.noise_variance_, 0))
    left, singular_values, _ = np.linalg.svd(weight / np.sqrt(variances)[:, None], full_matrices=False)
    turned = np.sqrt(variances)[:, None] * left * singular_values
    weight = np.zeros((data_dim, latent_dim))
    weight[:, : turned.shape[1]] = turned
    return LinearModel(weight, fitted.mean_, variances)


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
