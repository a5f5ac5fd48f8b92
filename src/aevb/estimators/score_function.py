"""The naive estimator that SGVB replaces, included to show its variance.

Paper: §2.2.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from aevb.estimators.samples import average, posterior_samples
from aevb.estimators.terms import Terms
from aevb.models import GenerativeModel, RecognitionModel


def score_function(generative: GenerativeModel, recognition: RecognitionModel, x: Any, epsilon: Any) -> Array:
    r"""Return the lower bound of one datapoint, with the score-function gradient for :math:`\phi`.

    .. math:: \nabla_\phi E_q[f(z)] \simeq \frac{1}{L} \sum_l f(z^{(l)}) \nabla_\phi \log q_\phi(z^{(l)} | x)

    The value is that of estimator A; only the gradient differs: z is held fixed, and the dependence of q on
    :math:`\phi` enters only through the score. The gradient for :math:`\theta` is the ordinary one.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x).
        x: One datapoint.
        epsilon: L draws of the noise, leading axis L; a tree of them if z is a tree.

    Returns:
        The bound in nats, a scalar.

    Paper: §2.2.
    """
    return score_function_terms(generative, recognition, x, epsilon).lower_bound


def score_function_terms(generative: GenerativeModel, recognition: RecognitionModel, x: Any, epsilon: Any) -> Terms:
    """Return the naive estimator with the two terms of its value."""
    (q, z), p = posterior_samples(recognition, x, epsilon), generative.latent_distribution(x)
    z = lax.stop_gradient(z)

    def one_sample(z):
        log_q, log_prior = jnp.asarray(q.log_prob(z)), jnp.asarray(p.log_prob(z))
        reconstruction = generative.log_likelihood(x, z)
        log_joint = log_prior + reconstruction
        f = lax.stop_gradient(log_joint - log_q)
        # Zero in value; its gradient is f times the score.
        score_term = f * (log_q - lax.stop_gradient(log_q))
        return Terms(log_joint - lax.stop_gradient(log_q) + score_term, reconstruction, log_q - log_prior)

    return average(one_sample, z)
