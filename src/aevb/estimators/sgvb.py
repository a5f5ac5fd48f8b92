"""The two SGVB estimators of the lower bound, the paper's central construction.

Paper: §2.3.
"""

from typing import Any

from jax import Array

from aevb.estimators.kl import divergences, log_ratios
from aevb.estimators.samples import average, posterior_samples, stopped
from aevb.estimators.terms import Terms
from aevb.models import GenerativeModel, RecognitionModel


def sgvb_a(generative: GenerativeModel, recognition: RecognitionModel, x: Any, epsilon: Any) -> Array:
    r"""Return estimator A of the lower bound of one datapoint: everything by sampling.

    .. math:: \tilde L^A(x) = \frac{1}{L} \sum_l \log p_\theta(x, z^{(l)}) - \log q_\phi(z^{(l)} | x)

    with :math:`z^{(l)} = g_\phi(\epsilon^{(l)}, x)`. It works for any reparameterizable posterior.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x).
        x: One datapoint.
        epsilon: L draws of the noise, leading axis L; a tree of them if z is a tree.

    Returns:
        The bound in nats, a scalar.

    Paper: eq. (2), eq. (6), §2.2, §2.3.
    """
    return terms_a(generative, recognition, x, epsilon).lower_bound


def sgvb_b(generative: GenerativeModel, recognition: RecognitionModel, x: Any, epsilon: Any) -> Array:
    r"""Return estimator B of the lower bound of one datapoint: the KL term in closed form, the rest by sampling.

    .. math:: \tilde L^B(x) = -D_{KL}(q_\phi(z|x) \| p_\theta(z)) + \frac{1}{L} \sum_l \log p_\theta(x | z^{(l)})

    with :math:`z^{(l)} = g_\phi(\epsilon^{(l)}, x)`. For the Gaussian case this is eq. (10).

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x), of a family whose KL from the prior is known; if it has several factors, the terms of those
            without a closed form are sampled.
        x: One datapoint.
        epsilon: L draws of the noise, leading axis L; a tree of them if z is a tree.

    Returns:
        The bound in nats, a scalar.

    Paper: eq. (3), eq. (7), eq. (10), §2.2, §2.3, §3.
    """
    return terms_b(generative, recognition, x, epsilon).lower_bound


def sgvb_stl(generative: GenerativeModel, recognition: RecognitionModel, x: Any, epsilon: Any) -> Array:
    r"""Return estimator A of the lower bound of one datapoint, with a gradient that "sticks the landing".

    .. math:: \nabla_\phi \tilde L(x) = \frac{1}{L} \sum_l
        \frac{\partial \left[ \log p_\theta(x, z) - \log q_\phi(z|x) \right]}{\partial z} \bigg|_{z = z^{(l)}}
        \frac{\partial z^{(l)}}{\partial \phi}

    The value is that of A; only the gradient for phi differs. It leaves out the score
    :math:`\nabla_\phi \log q_\phi(z|x)` at fixed z, whose expectation is zero. What remains has no variance where q is
    the exact posterior, and the less the closer q comes to it (Roeder, Wu and Duvenaud, "Sticking the landing: simple,
    lower-variance gradient estimators for variational inference", 2017).

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x).
        x: One datapoint.
        epsilon: L draws of the noise, leading axis L; a tree of them if z is a tree.

    Returns:
        The bound in nats, a scalar.
    """
    return terms_stl(generative, recognition, x, epsilon).lower_bound


def terms_a(generative: GenerativeModel, recognition: RecognitionModel, x: Any, epsilon: Any) -> Terms:
    """Return estimator A with its two terms, both from the same samples."""
    return _sampled_terms(generative, x, *posterior_samples(recognition, x, epsilon))


def terms_stl(generative: GenerativeModel, recognition: RecognitionModel, x: Any, epsilon: Any) -> Terms:
    """Return :func:`sgvb_stl` with its two terms."""
    q, z = posterior_samples(recognition, x, epsilon)
    return _sampled_terms(generative, x, stopped(q), z)


def _sampled_terms(generative, x, q, z):
    p = generative.latent_distribution(x)

    def one_sample(z):
        return generative.log_likelihood(x, z), log_ratios(q, p, z)

    return Terms.of(*average(one_sample, z))


def terms_b(generative: GenerativeModel, recognition: RecognitionModel, x: Any, epsilon: Any) -> Terms:
    """Return estimator B with its two terms, the second in closed form as far as one is known."""
    (q, z), p = posterior_samples(recognition, x, epsilon), generative.latent_distribution(x)
    return Terms.of(average(lambda z: generative.log_likelihood(x, z), z), divergences(q, p, z))
