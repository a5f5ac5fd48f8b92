"""Quantiles of the beta distribution, exact in value and in every derivative.

As for the gamma distribution, see :mod:`aevb.distributions._gamma_quantile`, Newton's method runs on an unbounded
coordinate measured from the mean, ``d = logit(z) - log(a / b)``, and the derivatives are the implicit ones.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from aevb.distributions._representable import open_unit_interval
from aevb.distributions._special import (
    continued_fraction,
    iterate_newton,
    log1mexp,
    log_tail_probability,
    promoted,
    stirling_remainder,
)


def logit_beta_quantile(a: ArrayLike, b: ArrayLike, u: ArrayLike) -> Array:
    r"""Logit of the u-quantile of a beta distribution with shapes ``a`` and ``b``.

    .. math:: I_{\sigma(t)}(a, b) = u

    with :math:`I` the regularized incomplete beta function. The logit keeps full precision at both ends of (0, 1).

    Args:
        a: First shape (``concentration1``), positive.
        b: Second shape (``concentration0``), positive.
        u: Probability in [0, 1]; all three broadcast.

    Returns:
        ``t = logit z``, differentiable in ``a``, ``b`` and ``u``.

    Example:
        >>> import jax.numpy as jnp
        >>> bool(jnp.isclose(logit_beta_quantile(2.0, 1.0, 0.25), 0.0, atol=1e-6))  # F(z) = z^2
        True
    """
    return jnp.log(a) - jnp.log(b) + beta_offset(a, b, u)


def beta_offset(a: ArrayLike, b: ArrayLike, u: ArrayLike) -> Array:
    """Logit of the u-quantile of a beta distribution minus that of its mean, log(a / b).

    It is the log of an F quantile with 2a and 2b degrees of freedom.
    """
    a, b, u = promoted(a, b, u)
    return _beta_offset(a, b, open_unit_interval(u))


@jax.custom_jvp
@jax.jit
def _beta_offset(a, b, u):
    """Return d = logit(z) - log(a / b) with I_z(a, b) = u."""
    is_lower = u <= jnp.exp(_log_beta_lower(a, b, jnp.zeros_like(a)))
    # The upper tail of beta(a, b) is the lower tail of beta(b, a).
    a, b = jnp.where(is_lower, a, b), jnp.where(is_lower, b, a)
    log_u = log_tail_probability(u, is_lower)

    def newton_step(d):
        log_lower = _log_beta_lower(a, b, d)
        return d - (log_lower - log_u) * jnp.exp(log_lower - _log_beta_density(a, b, d))

    d = iterate_newton(newton_step, jnp.zeros_like(a))
    return jnp.where(is_lower, d, -d)


@_beta_offset.defjvp
@jax.jit
def _beta_offset_jvp(primals, tangents):
    a, b, u = primals
    d = _beta_offset(a, b, u)
    is_lower = d <= 0

    def swap(first, second):
        return jnp.where(is_lower, first, second), jnp.where(is_lower, second, first)

    (a, b), (a_dot, b_dot), u_dot = swap(a, b), swap(*tangents[:2]), tangents[2]
    distance = -jnp.abs(d)

    def slope_along(*direction):
        return jax.jvp(lambda a, b: _log_beta_lower(a, b, distance), (a, b), direction)

    one, zero = jnp.ones_like(a), jnp.zeros_like(a)
    both = jax.vmap(slope_along, out_axes=(None, 0))  # one loop for both derivatives
    log_lower, (slope_a, slope_b) = both(jnp.stack([one, zero]), jnp.stack([zero, one]))
    lower_over_density = jnp.exp(log_lower - _log_beta_density(a, b, distance))
    sign = jnp.where(is_lower, 1, -1)
    u_slope = 1 / jnp.where(is_lower, u, 1 - u)
    return d, lower_over_density * (u_slope * u_dot - sign * (slope_a * a_dot + slope_b * b_dot))


def _log_beta_density(a, b, d):
    """Log density of d = logit(z) - log(a / b)."""
    remainder = stirling_remainder(a) + stirling_remainder(b) - stirling_remainder(a + b)
    # log(1 - m + m e^d), written for the smaller shape so that nothing large cancels.
    shape, d = jnp.where(a <= b, a, b), jnp.where(a <= b, d, -d)
    m = shape / (a + b)
    near = jnp.log1p(m * jnp.expm1(jnp.minimum(d, 15.0)))
    far = jnp.logaddexp(jnp.log1p(-m), jnp.log(m) + d)  # where e^d would overflow
    return shape * d - (a + b) * jnp.where(d < 15, near, far) - remainder


def _log_beta_lower(a, b, d):
    """Log of I_z(a, b) for z at or below the mean (d <= 0)."""
    odds = a / b * jnp.exp(d)
    z, z_complement = odds / (1 + odds), 1 / (1 + odds)
    direct = z <= (a + 1) / (a + b + 2)
    # Where the fraction would converge slowly, its mirror image converges fast, and neither tail is small.
    first, second = jnp.where(direct, a, b), jnp.where(direct, b, a)
    fraction = _beta_fraction(first, second, jnp.where(direct, z, z_complement))
    log_tail = _log_beta_density(a, b, d) - jnp.log(first) + jnp.log(fraction)
    return jnp.where(direct, log_tail, log1mexp(jnp.where(direct, -1.0, log_tail)))


def _beta_fraction(a, b, z):
    """Continued fraction of a B(a, b) I_z(a, b) / (z^a (1 - z)^b), DLMF 8.17.22."""

    def coefficients(n):
        m = n // 2
        even = m * (b - m) * z / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * z / ((a + 2 * m) * (a + 2 * m + 1))
        return jnp.where(n % 2 == 0, even, odd), jnp.ones_like(z)

    return 1 / continued_fraction(jnp.ones_like(z), coefficients)
