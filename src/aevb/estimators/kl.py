"""The KL divergence of the approximate posterior from the prior, in closed form, or factor by factor.

Paper: App. B.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from numpyro.distributions import Distribution
from numpyro.distributions.kl import kl_divergence

from aevb.distributions import Chain, LogScaleNormal, MarkovChain, Product, Stack, TreeDistribution
from aevb.distributions.log_scale_normal import exp_minus_line
from aevb.estimators.samples import average
from aevb.models import Datapoint, GenerativeModel, RecognitionModel


def kl(q: Distribution, p: Distribution, z: Any) -> Array:
    r"""Return :math:`D_{KL}(q \| p)` in nats; for distributions with several factors, an estimate from L draws.

    .. math:: D_{KL}(q \| p) = \sum_i E_q \left[ \log q_i(z_i | \cdot) - \log p_i(z_i | \cdot) \right]

    Each factor's term is in closed form, given the variables drawn before it, if one is known and valid, and sampled
    otherwise. It is valid if everything that p's factor may depend on is drawn before it in q: the term is then the
    conditional expectation of the sampled one. A plain distribution is a single factor, and needs a closed form.

    Args:
        q: Approximate posterior.
        p: Prior; with the same names, in any order, if q has named factors.
        z: L draws of q, a tree with leading axes L.

    Raises:
        NoClosedFormError: q and p are plain distributions, and no closed form is known for this pair.

    Example:
        >>> import numpyro.distributions as dist
        >>> from aevb.distributions import Product
        >>> q = Product({"upper": dist.Normal(1.0, 1.0), "lower": dist.Normal(0.0, 1.0)})
        >>> p = Product({"upper": dist.Normal(0.0, 1.0), "lower": dist.Normal(0.0, 1.0)})
        >>> print(kl(q, p, {"upper": jnp.zeros(1), "lower": jnp.zeros(1)}))
        0.5

    Paper: App. B.
    """
    first, *rest = divergences(q, p, z).values()
    return sum(rest, first)


def divergences(q: Distribution, p: Distribution, z: Any) -> dict[str, Array]:
    """Return the same for each level of a hierarchy, the one next to the data first; of others there is one level.

    Args:
        q: Approximate posterior.
        p: Prior.
        z: L draws of q.
    """
    if isinstance(q, Stack) and isinstance(p, Stack):
        return average(lambda z: _level_divergences(q, p, z), z)
    if isinstance(q, TreeDistribution) or isinstance(p, TreeDistribution):
        return {"z": average(lambda z: _divergence(q, p, z), z)}
    return {"z": analytic_kl(q, p)}


def log_ratios(q: Distribution, p: Distribution, z: Any) -> dict[str, Array]:
    """Return log q(z) - log p(z) of one draw, for each level of a hierarchy as in :func:`divergences`."""
    if not (isinstance(q, Stack) and isinstance(p, Stack)):
        return {"z": _log_ratio(q, p, z)}
    parts = q.parts(z)
    of_q, of_p = q.chain.at(parts), p.chain.at(parts)
    return {name: _log_ratio(of_q[name], of_p[name], parts[name]) for name in p.names}


def _level_divergences(q, p, z):
    found = _factor_divergences(q.chain, p.chain, q.parts(z))
    return {name: found[name] for name in p.names}


def _divergence(q, p, z):
    """Return the divergence, or an estimate of it from one draw."""
    if isinstance(q, Product | Chain) and isinstance(p, Product | Chain):
        return sum(_factor_divergences(q, p, z).values())
    if isinstance(q, MarkovChain) and isinstance(p, MarkovChain):
        return jnp.sum(q.over_steps(_divergence, z, p))
    try:
        return analytic_kl(q, p)
    except NoClosedFormError:
        return _log_ratio(q, p, z)


def _factor_divergences(q, p, z):
    """Return the divergence of each factor, or an estimate of it from one draw."""
    if set(q.names) != set(p.names):
        raise ValueError(f"q(z|x) has the factors {sorted(q.names)}, but p(z) has {sorted(p.names)}.")
    of_q, of_p = q.at(z), p.at(z)
    terms = {
        name: _divergence if p.parents(name) <= q.before(name) else _log_ratio  # p's parents are drawn before
        for name in q.names
    }
    return {name: term(of_q[name], of_p[name], z[name]) for name, term in terms.items()}


def _log_ratio(q, p, z):
    return jnp.asarray(q.log_prob(z)) - jnp.asarray(p.log_prob(z))


class NoClosedFormError(TypeError):
    """No closed form of the KL divergence is known for a pair of families."""


def analytic_kl(q: Distribution, p: Distribution) -> Array:
    r"""Return :math:`D_{KL}(q \| p)` in nats.

    For Gaussians with diagonal covariance it is the solution of appendix B, for any Gaussian prior:

    .. math:: D_{KL} = \frac{1}{2} \sum_j \left( r_j^2 + e^{v_j} - 1 - v_j \right)

    with :math:`r = (\mu_q - \mu_p) / \sigma_p` and :math:`v = \log \sigma_q^2 - \log \sigma_p^2`. If q has a full
    covariance :math:`L L^T`, then :math:`\sigma_q` is the diagonal of L, and the squares of its other elements, each in
    units of :math:`\sigma_p`, join the sum. Other pairs come from numpyro's table.

    Args:
        q: Approximate posterior.
        p: Prior, of the same shape.

    Returns:
        The divergence, one number for each element of the batch shape.

    Raises:
        NoClosedFormError: No closed form is known for this pair.

    Example:
        >>> from aevb.distributions import Normal
        >>> print(f"{analytic_kl(Normal(1.0, 1.0), Normal(0.0, 1.0)):.1f}")
        0.5

    Paper: App. B.
    """
    if q.event_shape == p.event_shape and _is_diagonal_gaussian(p):
        if _is_diagonal_gaussian(q):
            return _diagonal_kl(q, p)
        if isinstance(q, dist.MultivariateNormal):
            return _full_kl(q, p)
    try:
        return kl_divergence(q, p)
    except NotImplementedError:
        raise NoClosedFormError(
            f'estimator "sgvb-b" needs a closed form of KL(q || p), but none is known for q = {_name(q)} and '
            f'p = {_name(p)}. Use estimator="sgvb-a", which also samples that term.'
        ) from None


def has_analytic_kl(
    generative: GenerativeModel, recognition: RecognitionModel, data_dim: int, given_dim: int = 0
) -> bool:
    """Whether estimator B supports these models: whether :func:`kl` supports their pair of families.

    Args:
        generative: p(z) p(x|z).
        recognition: q(z|x).
        data_dim: D.
        given_dim: Width of what rows are conditioned on; 0 for nothing.
    """

    def divergence(x):
        q = recognition(x)
        z = jax.tree.map(lambda leaf: leaf[None], q.sample(jax.random.key(0)))
        return kl(q, generative.latent_distribution(x), z)

    try:
        x, given = (jax.ShapeDtypeStruct((size,), jnp.result_type(float)) for size in (data_dim, given_dim))
        jax.eval_shape(divergence, Datapoint(x, given=given) if given_dim else x)
    except NoClosedFormError:
        return False
    return True


def _is_diagonal_gaussian(d):
    return isinstance(d, dist.Independent) and isinstance(d.base_dist, dist.Normal)


def _diagonal_kl(q, p):
    terms = _gaussian_kl(q.base_dist.loc, _log_scale(q.base_dist), p.base_dist)
    return jnp.sum(terms, axis=tuple(range(-len(q.event_shape), 0)))


def _full_kl(q, p):
    terms = _gaussian_kl(q.loc, jnp.log(jnp.diagonal(q.scale_tril, axis1=-2, axis2=-1)), p.base_dist)
    rest = jnp.tril(q.scale_tril, -1) / p.base_dist.scale[..., None]
    return jnp.sum(terms, axis=-1) + jnp.sum(rest**2, axis=(-2, -1)) / 2


def _log_scale(gaussian):
    return gaussian.log_scale if isinstance(gaussian, LogScaleNormal) else jnp.log(gaussian.scale)


def _gaussian_kl(mu, log_sigma, p):
    r = (mu - p.loc) / p.scale
    v = 2 * (log_sigma - _log_scale(p))
    return (r**2 + exp_minus_line(v)) / 2


def _name(d):
    return f"Independent({_name(d.base_dist)})" if isinstance(d, dist.Independent) else type(d).__name__
