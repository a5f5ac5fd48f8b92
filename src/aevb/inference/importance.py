"""log p(x) by importance sampling from the encoder."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from aevb.inference.pareto import pareto_k_hat
from aevb.inference.rows import compiled
from aevb.models import GenerativeModel, RecognitionModel

CHUNK = 50  # samples of each datapoint that are decoded at once


def importance(
    generative: GenerativeModel, recognition: RecognitionModel, x: Array, keys: Array, num_samples: int = 1000
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    r"""Estimate log p(x) by importance sampling from q(z|x).

    .. math:: \log p(x) \approx \log \frac{1}{L} \sum_l w_l, \quad w_l = \frac{p(x, z^{(l)})}{q(z^{(l)} | x)},
        \quad z^{(l)} \sim q(z | x)

    The standard error is the delta method's, :math:`\sqrt{1/\mathrm{ESS} - 1/L}` with the effective sample size
    :math:`\mathrm{ESS} = (\sum w)^2 / \sum w^2`; the estimate is low by half its square on average.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x).
        x: Datapoints, (N, D).
        keys: One a datapoint, (N,).
        num_samples: L.

    Returns:
        Values (N,), standard errors (N,), and the diagnostics ``effective_sample_size`` and ``k_hat``.
    """
    weights = _log_weights((generative, recognition), x, keys, num_samples=num_samples)
    log_weights = np.asarray(weights, np.float64)
    values = log_mean_exp(log_weights)
    inverse_size = np.exp(log_mean_exp(2 * log_weights) - 2 * values) / num_samples
    std_errors = np.sqrt(np.maximum(inverse_size - 1 / num_samples, 0))
    return values, std_errors, {"effective_sample_size": 1 / inverse_size, "k_hat": pareto_k_hat(log_weights)}


def log_mean_exp(values: np.ndarray) -> np.ndarray:
    """Return the logarithm of the average of exp(values) over the last axis."""
    largest = values.max(axis=-1, keepdims=True)
    return np.log(np.mean(np.exp(values - largest), axis=-1)) + largest[..., 0]


@compiled("num_samples")
def _log_weights(models, x, keys, *, num_samples):
    """Return log w, (N, L), a chunk of samples at a time so that memory stays bounded."""
    generative, recognition = models

    def log_weight(x, key):
        q = recognition(x)
        z = q.sample(key)
        return generative.log_joint(x, z) - q.log_prob(z)

    def chunk(index):
        sample_keys = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, index), CHUNK))(keys)  # (N, CHUNK)
        return jax.vmap(lambda x, keys: jax.vmap(lambda key: log_weight(x, key))(keys))(x, sample_keys)

    log_weights = lax.map(chunk, jnp.arange(-(-num_samples // CHUNK)))  # (chunks, N, CHUNK)
    return jnp.moveaxis(log_weights, 0, 1).reshape(len(x), -1)[:, :num_samples]
