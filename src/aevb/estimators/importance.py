"""The importance-weighted bound, which becomes tighter than the paper's with each additional sample."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from aevb.estimators.samples import in_chunks, reparameterized, stopped
from aevb.estimators.terms import Terms
from aevb.models import GenerativeModel, RecognitionModel


def importance(generative: GenerativeModel, recognition: RecognitionModel, x: Any, epsilon: Any) -> Array:
    r"""Return the importance-weighted bound of one datapoint with K samples.

    .. math:: L_K(x) = E \left[ \log \frac{1}{K} \sum_k \frac{p_\theta(x, z^{(k)})}{q_\phi(z^{(k)} | x)} \right]

    With K = 1 it is estimator A; its expectation never decreases as K grows, and tends to log p(x) (Burda, Grosse and
    Salakhutdinov, "Importance weighted autoencoders", 2016, theorem 1). The memory that its gradient needs does not
    grow with K, see :func:`aevb.estimators.samples.in_chunks`.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x).
        x: One datapoint.
        epsilon: K draws of the noise, leading axis K.

    Returns:
        The bound in nats, a scalar.
    """
    return importance_terms(generative, recognition, x, epsilon).lower_bound


def importance_terms(generative: GenerativeModel, recognition: RecognitionModel, x: Any, epsilon: Any) -> Terms:
    """Return the same bound with the average of log p(x|z); the rest is no KL divergence, and no term of its own."""
    q, transform = reparameterized(recognition, x, epsilon)
    p: Any = generative.latent_distribution(x)

    def one_sample(epsilon):
        z = transform(epsilon)
        return generative.log_likelihood(x, z), p.log_prob(z) - q.log_prob(z)

    log_likelihoods, log_ratios = in_chunks(one_sample, epsilon)  # (K,)
    return Terms(_log_mean(log_likelihoods + log_ratios), jnp.mean(log_likelihoods))


def importance_dreg(generative: GenerativeModel, recognition: RecognitionModel, x: Any, epsilon: Any) -> Array:
    r"""Return the importance-weighted bound of one datapoint, with the doubly reparameterized gradient for phi.

    .. math:: \nabla_\phi L_K \simeq \sum_k \bar w_k^2 \, \frac{\partial \log w_k}{\partial z^{(k)}}
        \frac{\partial z^{(k)}}{\partial \phi}, \qquad
        w_k = \frac{p_\theta(x, z^{(k)})}{q_\phi(z^{(k)} | x)}, \quad \bar w_k = \frac{w_k}{\sum_i w_i}

    The value is that of :func:`importance`; only the gradient differs: its signal does not vanish as K grows, and where
    q is the exact posterior its variance is zero (Tucker, Lawson, Gu and Maddison, "Doubly reparameterized gradient
    estimators for Monte Carlo objectives", 2019, eq. 8). The gradient for theta is the ordinary one. It costs one more
    pass through the decoder where K samples are computed in chunks.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x).
        x: One datapoint.
        epsilon: K draws of the noise, leading axis K.

    Returns:
        The bound in nats, a scalar.
    """
    q, transform = reparameterized(recognition, x, epsilon)
    p, q = generative.latent_distribution(x), stopped(q)

    def log_weight(epsilon, share):
        z = _with_gradient_times(transform(epsilon), share)
        return p.log_prob(z) + generative.log_likelihood(x, z) - q.log_prob(z)

    ones = jnp.ones(len(jax.tree.leaves(epsilon)[0]))
    shares = jax.nn.softmax(lax.stop_gradient(in_chunks(log_weight, epsilon, ones)))
    # The derivative of the bound with respect to log w_k is the share of w_k, and z's is multiplied by it again.
    return _log_mean(in_chunks(log_weight, epsilon, shares))


def _log_mean(log_weights):
    return jax.nn.logsumexp(log_weights) - jnp.log(len(log_weights))


@jax.custom_vjp
def _with_gradient_times(z, factor):
    """Return z, whose gradient is multiplied by a factor on the way back."""
    return z


_with_gradient_times.defvjp(
    lambda z, factor: (z, factor),
    lambda factor, cotangent: (jax.tree.map(lambda c: factor * c, cotangent), jnp.zeros_like(factor)),
)
