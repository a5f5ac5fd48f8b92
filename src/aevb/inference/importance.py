"""log p(x) by importance sampling from a mixture of the encoder and the prior."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import logsumexp

from aevb.inference.pareto import pareto_k_hat
from aevb.models import GenerativeModel, RecognitionModel
from aevb.models.compilation import compiled

CHUNK = 50  # samples per datapoint that are decoded at once
MAX_VALUES = 2_000_000  # of x that are decoded at once; a convolutional network has some hundred times as many inside
DEFENSIVE = 0.25


def importance(
    generative: GenerativeModel,
    recognition: RecognitionModel,
    x: Array,
    keys: Array,
    num_samples: int = 1000,
    defensive: float = DEFENSIVE,
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    r"""Estimate log p(x) by importance sampling from q(z|x), mixed with the prior.

    .. math:: \log p(x) \approx \log \frac{1}{L} \sum_l w_l, \quad w_l = \frac{p(x, z^{(l)})}{r(z^{(l)})},
        \quad z^{(l)} \sim r = (1 - \alpha)\, q(z | x) + \alpha\, p(z)

    An encoder that misses a mode of the posterior, or all of it, would make the estimate too low by the missing mass,
    and few samples would show it. With a fraction from the prior, no weight exceeds :math:`p(x|z) / \alpha`
    (Hesterberg, "Weighted average importance sampling and defensive mixture distributions", 1995). For a perfect
    encoder this costs only that fraction of the samples.

    The standard error is by the delta method, :math:`\sqrt{1/\mathrm{ESS} - 1/L}` with the effective sample size
    :math:`\mathrm{ESS} = (\sum w)^2 / \sum w^2`; the estimate is too low by half its square on average.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x).
        x: Datapoints, (N, D).
        keys: One per datapoint, (N,).
        num_samples: L.
        defensive: :math:`\alpha`, the fraction of samples from the prior; 0, as in the literature, for none.

    Returns:
        Values (N,), standard errors (N,), and the diagnostics ``effective_sample_size`` and ``k_hat``.
    """
    weights = _log_weights((generative, recognition), x, keys, num_samples, float(defensive))
    return estimate_from(weights)


def estimate_from(log_weights) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return values, standard errors and diagnostics from log weights (N, L)."""
    log_weights = np.asarray(log_weights, np.float64)
    num_samples = log_weights.shape[-1]
    values = log_mean_exp(log_weights)
    inverse_size = np.exp(log_mean_exp(2 * log_weights) - 2 * values) / num_samples
    std_errors = np.sqrt(np.maximum(inverse_size - 1 / num_samples, 0))
    return values, std_errors, {"effective_sample_size": 1 / inverse_size, "k_hat": pareto_k_hat(log_weights)}


def log_mean_exp(values: np.ndarray) -> np.ndarray:
    """Return the logarithm of the average of exp(values) over the last axis."""
    return logsumexp(values, axis=-1) - np.log(values.shape[-1])


def propose(models, x: Array, key: Array, defensive: float) -> tuple[Array, Array]:
    """Draw one z (J,) for one x from the encoder or, with probability `defensive`, from the prior; return z and log w.

    Without an encoder, z always comes from the prior.
    """
    generative, recognition = models
    prior = generative.latent_distribution(x)
    if recognition is None:
        z = prior.sample(key)
        return z, generative.log_likelihood(x, z)
    q = recognition(x)
    key_choice, key_q, key_prior = jax.random.split(key, 3)
    z = jnp.where(jax.random.uniform(key_choice) < defensive, prior.sample(key_prior), q.sample(key_q))
    log_shares = jnp.log(jnp.array([1 - defensive, defensive]))
    log_proposal = jax.nn.logsumexp(log_shares + jnp.stack([q.log_prob(z), prior.log_prob(z)]))
    return z, generative.log_joint(x, z) - log_proposal


def draw_from(parts: Sequence[Any], shares: Sequence[float], key: Array, num: int) -> tuple[Array, Array]:
    """Draw from a mixture of densities; return the draws (num, J) and their log densities under the mixture (num,).

    Args:
        parts: The densities, with methods ``sample(key, shape)`` and ``log_prob(z)``.
        shares: Fraction of the draws from each density; additional entries are ignored.
        key: Random key.
        num: Number of draws.
    """
    total = np.cumsum(shares[: len(parts)])
    ends = np.round(num * total / total[-1]).astype(int)
    counts = np.diff(ends, prepend=0)
    keys = jax.random.split(key, len(parts))
    draws = [jnp.asarray(part.sample(key, (int(n),))) for part, key, n in zip(parts, keys, counts, strict=True)]
    z = jnp.concatenate(draws)
    log_parts = jnp.stack([jax.vmap(lambda z, part=part: jnp.asarray(part.log_prob(z)))(z) for part in parts])
    return z, jax.nn.logsumexp(log_parts, axis=0, b=(counts / num)[:, None])


def propose_pool(generative, q, x: Any, key: Array, num: int, defensive: float = 0.5) -> tuple[Array, Array]:
    """Return `num` draws z (num, J) for one x, this share from the prior and the others from q(z|x), and log w."""
    prior = generative.latent_distribution(x)
    pool, log_mixture = draw_from([prior] if q is None else [prior, q], (defensive, 1 - defensive), key, num)
    return pool, jax.vmap(lambda z: generative.log_joint(x, z))(pool) - log_mixture


def _log_weights(models, x, keys, num_samples, defensive):
    """Return log w, (N, L): some rows, and some samples of each, at a time, so that memory stays bounded.

    The loop is one of Python, because XLA computes convolutions in loops of its own many times slower on a CPU.
    """
    num_rows = len(keys)
    num_values = sum(leaf.size for leaf in jax.tree.leaves(x)) // num_rows
    size = min(max(MAX_VALUES // (CHUNK * max(num_values, 1)), 1), num_rows)
    found = []
    for start in range(0, num_rows, size):
        rows, some_keys = jax.tree.map(lambda array, start=start: array[start : start + size], (x, keys))
        chunks = range(-(-num_samples // CHUNK))
        found.append([_chunk(models, rows, some_keys, index, defensive=defensive) for index in chunks])
    return np.concatenate([np.concatenate(chunks, axis=1) for chunks in found])[:, :num_samples]


@compiled("defensive")
def _chunk(models, x, keys, index, *, defensive):
    """Return log w of one chunk of samples, (N, CHUNK)."""

    def log_weight(x, key):
        return propose(models, x, key, defensive)[1]

    sample_keys = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, index), CHUNK))(keys)
    return jax.vmap(lambda x, keys: jax.vmap(lambda key: log_weight(x, key))(keys))(x, sample_keys)
