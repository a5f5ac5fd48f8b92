"""Estimators of the lower bound when the parameters are random variables too.

Both take a function that estimates the bound of the data given the parameters: :func:`aevb.estimators.minibatch` of an
estimator for one datapoint, which contains the factor N/M and M datapoints where the paper has one.

Paper: App. F.
"""

from collections.abc import Callable
from typing import Any

from jax import Array

from aevb.estimators.samples import average


def full_vb_a(
    transform: Callable[[Any], Any],
    log_ratio: Callable[[Any], Array],
    bound_of_data: Callable[[Any, Any], Array],
    zeta: Any,
    epsilon: Any,
) -> Array:
    r"""Return the generic estimator of the bound on log p(X): everything by sampling.

    .. math:: \tilde L(X) = \frac{1}{L} \sum_l \frac{N}{M} \sum_i \left( \log p_\theta(x^{(i)}, z^{(i,l)})
        - \log q(z^{(i,l)} | x^{(i)}) \right) + \log p_\alpha(\theta^{(l)}) - \log q(\theta^{(l)})

    with :math:`\theta^{(l)} = h_\phi(\zeta^{(l)})`.

    Args:
        transform: :math:`h_\phi`, from noise to parameters.
        log_ratio: :math:`\log p_\alpha(\theta) - \log q_\phi(\theta)`.
        bound_of_data: Estimate of the bound on log p(X) given the parameters, a function of them and of epsilon; for
            the first sum above it is ``minibatch(sgvb_a, N)``.
        zeta: L draws of the parameters' noise, a pytree with leading axes L.
        epsilon: L draws of the latent variables' noise, likewise.

    Returns:
        The bound of the whole data set in nats, a scalar.

    Paper: eqs. (14), (16), (18), (20), (21), and (22), App. F.
    Deviates: all datapoints of a minibatch share a draw of the parameters; the paper has one for each.
    """

    def one_sample(zeta, epsilon):
        theta = transform(zeta)
        return bound_of_data(theta, epsilon) + log_ratio(theta)

    return average(one_sample, zeta, epsilon)


def full_vb_b(
    transform: Callable[[Any], Any], kl: Array, bound_of_data: Callable[[Any, Any], Array], zeta: Any, epsilon: Any
) -> Array:
    r"""Return the estimator with lower variance: the KL divergences in closed form, the likelihood by sampling.

    .. math:: \tilde L(X) = -D_{KL}(q(\theta) \| p_\alpha(\theta)) + \frac{1}{L} \sum_l \frac{N}{M} \sum_i
        \left( -D_{KL}(q(z|x^{(i)}) \| p_\theta(z)) + \log p_\theta(x^{(i)} | z^{(i,l)}) \right)

    Args:
        transform: :math:`h_\phi`, from noise to parameters.
        kl: :math:`D_{KL}(q_\phi(\theta) \| p_\alpha(\theta))`.
        bound_of_data: Estimate of the bound on log p(X) given the parameters, a function of them and of epsilon; for
            the second sum above it is ``minibatch(sgvb_b, N)``.
        zeta: L draws of the parameters' noise, a pytree with leading axes L.
        epsilon: L draws of the latent variables' noise, likewise.

    Returns:
        The bound of the whole data set in nats, a scalar.

    Paper: eq. (24), App. F.1.
    Deviates: all datapoints of a minibatch share a draw of the parameters; the paper has one for each.
    """
    return average(lambda zeta, epsilon: bound_of_data(transform(zeta), epsilon), zeta, epsilon) - kl
