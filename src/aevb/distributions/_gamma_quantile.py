"""Quantiles of the gamma distribution, exact in value and in every derivative.

The density of log z is log-concave, so the log CDF is concave there and Newton's method started at the mean converges
from anywhere, without a bracket and without underflow. The coordinate is measured from the mean a: ``d = log(z / a)``;
the leading terms of Stirling's formula then cancel exactly, and float32 stays accurate at shapes of 500.

The derivatives are the implicit ones: differentiating ``F(d, a) = u`` gives ``dd/da = -(dF/da) / f``.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from aevb.distributions._representable import open_unit_interval
from aevb.distributions._special import (
    MAX_TERMS,
    continued_fraction,
    iterate_newton,
    log1mexp,
    log_tail_probability,
    promoted,
    stirling_remainder,
)


def log_gamma_quantile(a: ArrayLike, u: ArrayLike) -> Array:
    r"""Logarithm of the u-quantile of a standard gamma distribution with shape ``a``.

    .. math:: P(a, e^t) = u

    with :math:`P` the regularized lower incomplete gamma function. Only the logarithm stays in range: the median at
    shape 0.05 is 6e-7, the 1% quantile 6e-41.

    Args:
        a: Shape, positive.
        u: Probability in [0, 1]; broadcasts against ``a``.

    Returns:
        ``t = log z``, differentiable in ``a`` and ``u``.

    Example:
        >>> import jax.numpy as jnp
        >>> bool(jnp.isclose(log_gamma_quantile(1.0, 0.5), jnp.log(jnp.log(2.0))))
        True
    """
    return jnp.log(a) + gamma_offset(a, u)


def gamma_offset(a: ArrayLike, u: ArrayLike) -> Array:
    """Log of the ratio of the u-quantile of a gamma distribution to its mean a.

    Where only the ratio is needed, as for Student's t, this avoids the rounding error of a sum that would cancel.
    """
    a, u = promoted(a, u)
    return _gamma_offset(a, open_unit_interval(u))


@jax.custom_jvp
@jax.jit  # one program instead of dozens, even when called outside jit
def _gamma_offset(a, u):
    """Return d = log(z / a) with P(a, z) = u."""
    is_lower = u <= jnp.exp(_log_gamma_tail(a, jnp.zeros_like(a), True))
    log_u = log_tail_probability(u, is_lower)

    def newton_step(d):
        log_tail = _log_gamma_tail(a, d, is_lower)
        excess = (log_tail - log_u) * jnp.exp(log_tail - _log_gamma_density(a, d))
        # The step in the upper tail is in z instead of log z: there log Q ~ -z, and log z would overshoot by e^d.
        return jnp.where(is_lower, d - excess, d + jnp.log1p(jnp.maximum(excess, -0.9)))

    return iterate_newton(newton_step, jnp.zeros_like(a))


@_gamma_offset.defjvp
@jax.jit
def _gamma_offset_jvp(primals, tangents):
    a, u = primals
    a_dot, u_dot = tangents
    d = _gamma_offset(a, u)
    is_lower = d <= 0
    log_tail, slope_a = jax.jvp(lambda a: _log_gamma_tail(a, d, is_lower), (a,), (jnp.ones_like(a),))
    tail_over_density = jnp.exp(log_tail - _log_gamma_density(a, d))
    sign = jnp.where(is_lower, 1, -1)
    u_slope = 1 / jnp.where(is_lower, u, 1 - u)
    return d, tail_over_density * (u_slope * u_dot - sign * slope_a * a_dot)


def _log_gamma_density(a, d):
    """Log density of d = log(z / a): Stirling's a log a - a has cancelled."""
    return a * (d - jnp.expm1(d)) - stirling_remainder(a)


def _log_gamma_tail(a, d, is_lower):
    """Log of P(a, a e^d) where `is_lower`, of Q(a, a e^d) elsewhere."""
    z = a * jnp.exp(d)
    by_series = z < a + 1
    # Power series of P, all terms positive (DLMF 8.7.1 multiplied by e^z).
    z_series = jnp.where(by_series, z, 0.5 * a)
    log_lower = _log_gamma_density(a, d) - jnp.log(a) + jnp.log(_gamma_series(a, z_series))
    # Continued fraction of Q (DLMF 8.9.2).
    z_fraction = jnp.where(by_series, a + 2, z)
    log_upper = _log_gamma_density(a, d) + jnp.log(_gamma_fraction(a, z_fraction))
    log_upper = jnp.where(by_series, log1mexp(jnp.where(by_series, log_lower, -1.0)), log_upper)
    return jnp.where(is_lower, log_lower, log_upper)


def _gamma_series(a, z):
    """Sum of z^n / ((a + 1) ... (a + n)) over n >= 0."""

    def body(carry):
        n, term, total = carry
        term = term * z / (a + n)
        return n + 1, term, total + term

    def unfinished(carry):
        n, term, total = carry
        return (n < MAX_TERMS) & jnp.any(term > _tolerance(a) * total)

    one = jnp.ones_like(a)
    return lax.while_loop(unfinished, body, (1, one, one))[2]


def _gamma_fraction(a, z):
    """1/(z+1-a - 1(1-a)/(z+3-a - 2(2-a)/(z+5-a - ...)))."""

    def coefficients(n):
        return -n * (n - a), z + 2 * n + 1 - a

    return 1 / continued_fraction(z + 1 - a, coefficients)


def _tolerance(a):
    # Terms decay like a Gaussian: the derivative in `a`, which lags the value by a logarithm, has converged too.
    return jnp.finfo(a.dtype).eps ** 1.5
