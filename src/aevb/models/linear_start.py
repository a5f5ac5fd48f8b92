"""Initial values in closed form: a Gaussian model starts as the linear model that fits the data best.

Maximum likelihood for a linear-Gaussian model is available in closed form (PCA), or by a few cheap iterations (factor
analysis, mixtures). A network with pairs of mirrored units computes any linear map exactly, because f(a) - f(-a) = a
for these activations. A deep model can therefore start there, with its latent variables in use, and learn what is not
linear.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
import numpyro.distributions as dist

from aevb.arrays import on_device
from aevb.models.conditionals import Conditional, Rescaled
from aevb.models.cross_validation import NUM_FOLDS
from aevb.models.generative import GenerativeModel
from aevb.models.linear_choice import fit_linear
from aevb.models.linear_model import LinearModel
from aevb.models.priors import MIXTURE, STANDARD, prior_from
from aevb.models.recognition import RecognitionModel
from aevb.networks import MLP

LINEAR_PRIORS = (STANDARD, MIXTURE)  # of the linear models
MIRRORED = ("gelu", "relu", "silu", "softplus", "identity")  # activations with f(a) - f(-a) = a, or a multiple of it


def start_linear(
    models: tuple[GenerativeModel, RecognitionModel],
    rows: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    priors: Sequence[str] = (STANDARD,),
    **options,
) -> tuple[GenerativeModel, RecognitionModel]:
    """Return the models with weights that make them the best linear model of the rows, if possible.

    It is possible for the prior N(0, I), Gaussian encoders and decoders with standardized columns, mirrored
    activations, and hidden layers at least twice as wide as the number of latent variables; other models are returned
    unchanged.

    Args:
        models: The pair (generative, recognition), with initial values.
        rows: (n, D), in the units of the data.
        weights: (n,), of the rows, above 0; None if they are equal.
        priors: Names of the priors to choose from, see :data:`aevb.models.PRIOR_NAMES`; others are ignored.
        options: Passed to :func:`~aevb.models.linear_choice.fit_linear`.
    """
    generative, recognition = models
    decoder: Any = generative.decoder
    encoder: Any = recognition.encoder
    fits = _fits(decoder) and _fits(encoder) and _is_standard_normal(generative.prior)
    if not fits or len(rows) < 2 * NUM_FOLDS or rows.shape[1] < 2 or not set(LINEAR_PRIORS) & set(priors):
        return models
    latent_dim = encoder.conditional.network.layers[-1].weight.shape[0] // 2
    networks = {"decoder": decoder.conditional.network, "encoder": encoder.conditional.network}
    if not all(_is_wide_enough(network, min(latent_dim, rows.shape[1])) for network in networks.values()):
        return models
    standardized = (rows - np.asarray(decoder.units.loc)) / np.asarray(decoder.units.scale)
    linear = fit_linear(standardized, latent_dim, weights, priors, **options)
    made = {name: linear_network(networks[name], *part) for name, part in _maps(linear).items()}
    generative = eqx.tree_at(lambda model: model.decoder.conditional.network, generative, made["decoder"])
    if linear.components is not None:
        generative = GenerativeModel(prior_from(*linear.components), generative.decoder)
    return generative, eqx.tree_at(lambda model: model.encoder.conditional.network, recognition, made["encoder"])


def _maps(linear: LinearModel) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return matrix and bias of decoder and encoder: the means, and below them the log variances."""
    precisions, zeros = linear.posterior_precisions, np.zeros_like
    # Cov z = I, for a mixture too: the best linear map to z has the form of the posterior mean for p(z) = N(0, I).
    inverse = (linear.weight / linear.variances[:, None] / (1 + np.diag(linear.information))).T  # (J, D)
    log_variances = {"decoder": np.log(linear.variances), "encoder": -np.log(precisions)}
    return {
        "decoder": (np.vstack([linear.weight, zeros(linear.weight)]), np.r_[linear.bias, log_variances["decoder"]]),
        "encoder": (np.vstack([inverse, zeros(inverse)]), np.r_[-inverse @ linear.bias, log_variances["encoder"]]),
    }


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
