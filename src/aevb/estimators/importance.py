"""The importance-weighted bound, which becomes tighter than the paper's with each additional sample."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from aevb.estimators.samples import posterior_samples
from aevb.estimators.terms import Terms
from aevb.models import GenerativeModel, RecognitionModel


def importance(generative: GenerativeModel, recognition: RecognitionModel, x: Any, epsilon: Any) -> Array:
    r"""Return the importance-weighted bound of one datapoint with K samples.

    .. math:: L_K(x) = E \left[ \log \frac{1}{K} \sum_k \frac{p_\theta(x, z^{(k)})}{q_\phi(z^{(k)} | x)} \right]

    With K = 1 it is estimator A; its expectation never decreases as K grows, and tends to log p(x) (Burda, Grosse and
    Salakhutdinov, "Importance weighted autoencoders", 2016, theorem 1).

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x).
        x: One datapoint.
        epsilon: K draws of the noise, leading axis K.

    Returns:
        The bound in nats, a scalar.
    """
    q, z = posterior_samples(recognition, x, epsilon)  # z: (K, J)
    log_weights = jax.vmap(lambda z: generative.log_joint(x, z) - q.log_prob(z))(z)
    return _log_mean(log_weights)


def importance_terms(generative: GenerativeModel, recognition: RecognitionModel, x: Any, epsilon: Any) -> Terms:
    """Return the same bound with the average of log p(x|z); the rest is no KL divergence, and no term of its own."""
    q, z = posterior_samples(recognition, x, epsilon)
    log_likelihoods = jax.vmap(lambda z: generative.log_likelihood(x, z))(z)
    p: Any = generative.latent_distribution(x)
    log_ratios = jax.vmap(lambda z: p.log_prob(z) - q.log_prob(z))(z)
    return Terms(_log_mean(log_likelihoods + log_ratios), jnp.mean(log_likelihoods))


def _log_mean(log_weights):
    return jax.nn.logsumexp(log_weights) - jnp.log(len(log_weights))
