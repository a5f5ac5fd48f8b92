"""The two SGVB estimators of the lower bound, the paper's central construction.

Paper: §2.3.
"""

from jax import Array

from aevb.distributions import reparameterize
from aevb.estimators.kl import analytic_kl
from aevb.estimators.samples import average
from aevb.models import GenerativeModel, RecognitionModel


def sgvb_a(generative: GenerativeModel, recognition: RecognitionModel, x: Array, epsilon: Array) -> Array:
    r"""Return estimator A of the lower bound of one datapoint: everything by sampling.

    .. math:: \tilde L^A(x) = \frac{1}{L} \sum_l \log p_\theta(x, z^{(l)}) - \log q_\phi(z^{(l)} | x)

    with :math:`z^{(l)} = g_\phi(\epsilon^{(l)}, x)`. It works for any reparameterizable posterior.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x).
        x: One datapoint.
        epsilon: L draws of the noise, leading axis L.

    Returns:
        The bound in nats, a scalar.

    Paper: eq. (2), eq. (6), §2.2, §2.3.
    """
    q = recognition(x)
    z = reparameterize(q).transform(epsilon)  # (L, J)
    return average(lambda z: generative.log_joint(x, z) - q.log_prob(z), z)


def sgvb_b(generative: GenerativeModel, recognition: RecognitionModel, x: Array, epsilon: Array) -> Array:
    r"""Return estimator B of the lower bound of one datapoint: the KL term in closed form, the rest by sampling.

    .. math:: \tilde L^B(x) = -D_{KL}(q_\phi(z|x) \| p_\theta(z)) + \frac{1}{L} \sum_l \log p_\theta(x | z^{(l)})

    with :math:`z^{(l)} = g_\phi(\epsilon^{(l)}, x)`. For the Gaussian case this is eq. (10).

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x), of a family whose KL from the prior is known.
        x: One datapoint.
        epsilon: L draws of the noise, leading axis L.

    Returns:
        The bound in nats, a scalar.

    Paper: eq. (3), eq. (7), eq. (10), §2.2, §2.3, §3.
    """
    q = recognition(x)
    z = reparameterize(q).transform(epsilon)  # (L, J)
    reconstruction = average(lambda z: generative.log_likelihood(x, z), z)
    return reconstruction - analytic_kl(q, generative.latent_distribution())
