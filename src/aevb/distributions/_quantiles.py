"""Quantiles of the gamma and beta distributions, exact in value and in every derivative.

Both families have densities on an unbounded coordinate (log z for the gamma, logit z for the beta) that are
log-concave, so their log CDFs are concave there and Newton's method started at the mean converges from anywhere,
without a bracket and without underflow. Coordinates are measured from the mean: ``d = log(z / a)`` for a gamma of shape
``a``, ``d = logit(z) - log(a / b)`` for a beta; the leading terms of Stirling's formula then cancel exactly, and
float32 stays accurate at shapes of 500.

The derivatives are the implicit ones: differentiating ``F(d, phi) = u`` gives ``dd/dphi = -(dF/dphi) / f``.
"""

import math

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from aevb.distributions._representable import open_unit_interval

_MAX_TERMS = 20_000  # enough for shapes up to about 1e6 in float64: the sums below need about sqrt(80 a) terms
_MAX_NEWTON_STEPS = 60


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
    a, u = _promote(a, u)
    return _gamma_offset(a, open_unit_interval(u))


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
    a, b, u = _promote(a, b, u)
    return _beta_offset(a, b, open_unit_interval(u))


def _promote(*arguments):
    dtype = jnp.result_type(float, *arguments)
    return jnp.broadcast_arrays(*(jnp.asarray(argument, dtype) for argument in arguments))


# ---- gamma -----------------------------------------------------------------------------------------------------------


@jax.custom_jvp
@jax.jit  # one program instead of dozens, even when called outside jit
def _gamma_offset(a, u):
    """Return d = log(z / a) with P(a, z) = u."""
    is_lower = u <= jnp.exp(_log_gamma_tail(a, jnp.zeros_like(a), True))
    log_u = _log_tail_probability(u, is_lower)

    def newton_step(d):
        log_tail = _log_gamma_tail(a, d, is_lower)
        excess = (log_tail - log_u) * jnp.exp(log_tail - _log_gamma_density(a, d))
        # The step in the upper tail is in z instead of log z: there log Q ~ -z, and log z would overshoot by e^d.
        return jnp.where(is_lower, d - excess, d + jnp.log1p(jnp.maximum(excess, -0.9)))

    return _iterate_newton(newton_step, jnp.zeros_like(a))


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
    return a * (d - jnp.expm1(d)) - _stirling_remainder(a)


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
    log_upper = jnp.where(by_series, _log1mexp(jnp.where(by_series, log_lower, -1.0)), log_upper)
    return jnp.where(is_lower, log_lower, log_upper)


def _gamma_series(a, z):
    """Sum of z^n / ((a + 1) ... (a + n)) over n >= 0."""

    def body(carry):
        n, term, total = carry
        term = term * z / (a + n)
        return n + 1, term, total + term

    def unfinished(carry):
        n, term, total = carry
        return (n < _MAX_TERMS) & jnp.any(term > _tolerance(a) * total)

    one = jnp.ones_like(a)
    return lax.while_loop(unfinished, body, (1, one, one))[2]


def _gamma_fraction(a, z):
    """1/(z+1-a - 1(1-a)/(z+3-a - 2(2-a)/(z+5-a - ...)))."""

    def coefficients(n):
        return -n * (n - a), z + 2 * n + 1 - a

    return 1 / _continued_fraction(z + 1 - a, coefficients)


# ---- beta ------------------------------------------------------------------------------------------------------------


@jax.custom_jvp
@jax.jit
def _beta_offset(a, b, u):
    """Return d = logit(z) - log(a / b) with I_z(a, b) = u."""
    is_lower = u <= jnp.exp(_log_beta_lower(a, b, jnp.zeros_like(a)))
    # The upper tail of beta(a, b) is the lower tail of beta(b, a).
    a, b = jnp.where(is_lower, a, b), jnp.where(is_lower, b, a)
    log_u = _log_tail_probability(u, is_lower)

    def newton_step(d):
        log_lower = _log_beta_lower(a, b, d)
        return d - (log_lower - log_u) * jnp.exp(log_lower - _log_beta_density(a, b, d))

    d = _iterate_newton(newton_step, jnp.zeros_like(a))
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
    remainder = _stirling_remainder(a) + _stirling_remainder(b) - _stirling_remainder(a + b)
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
    return jnp.where(direct, log_tail, _log1mexp(jnp.where(direct, -1.0, log_tail)))


def _beta_fraction(a, b, z):
    """Continued fraction of a B(a, b) I_z(a, b) / (z^a (1 - z)^b), DLMF 8.17.22."""

    def coefficients(n):
        m = n // 2
        even = m * (b - m) * z / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * z / ((a + 2 * m) * (a + 2 * m + 1))
        return jnp.where(n % 2 == 0, even, odd), jnp.ones_like(z)

    return 1 / _continued_fraction(jnp.ones_like(z), coefficients)


# ---- shared ----------------------------------------------------------------------------------------------------------


def _stirling_remainder(a):
    """Return log Gamma(a) - (a log a - a), without cancellation for large a (DLMF 5.11.1)."""
    large = a > 10
    inverse = 1 / jnp.where(large, a, 10.0)
    coefficients = [1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12]
    series = inverse * jnp.polyval(jnp.asarray(coefficients, a.dtype), inverse**2)
    small = jnp.where(large, 1.0, a)
    direct = lax.lgamma(small) - small * jnp.log(small) + small
    return jnp.where(large, 0.5 * jnp.log(2 * jnp.pi * inverse) + series, direct)


def _continued_fraction(b0, coefficients):
    """Evaluate b0 + a1/(b1 + a2/(b2 + ...)) by the modified Lentz method, `coefficients(n) = (a_n, b_n)`."""
    tiny, eps = jnp.finfo(b0.dtype).tiny ** 0.5, jnp.finfo(b0.dtype).eps
    # At integer shapes the fraction terminates early but its derivative does not; the error falls as exp(-4 sqrt(n)).
    min_terms = 4 + math.log(eps) ** 2 / 16

    def away_from_zero(value):
        return jnp.where(jnp.abs(value) < tiny, tiny, value)

    def body(carry):
        n, value, c, d, _ = carry
        a_n, b_n = coefficients(n)
        d = 1 / away_from_zero(b_n + a_n * d)
        c = away_from_zero(b_n + a_n / c)
        return n + 1, value * c * d, c, d, jnp.abs(c * d - 1)

    def unfinished(carry):
        n, *_, change = carry
        return (n < _MAX_TERMS) & ((n < min_terms) | jnp.any(change > 4 * eps))

    start = away_from_zero(b0)
    initial = (1, start, start, jnp.zeros_like(b0), jnp.full_like(b0, jnp.inf))
    return lax.while_loop(unfinished, body, initial)[1]


def _iterate_newton(newton_step, start):
    def body(carry):
        n, d, _ = carry
        update = newton_step(d)
        return n + 1, update, jnp.abs(update - d) / (1 + jnp.abs(d))

    def unfinished(carry):
        n, _, change = carry
        # Convergence is quadratic: after a change of eps^0.6 the remaining error is below rounding.
        return (n < _MAX_NEWTON_STEPS) & jnp.any(change > jnp.finfo(start.dtype).eps ** 0.6)

    return lax.while_loop(unfinished, body, (0, start, jnp.full_like(start, jnp.inf)))[1]


def _log_tail_probability(u, is_lower):
    return jnp.where(is_lower, jnp.log(u), jnp.log1p(-u))


def _log1mexp(log_p):
    """Return log(1 - p) from log p."""
    return jnp.log(-jnp.expm1(log_p))


def _tolerance(a):
    # Terms decay like a Gaussian: the derivative in `a`, which lags the value by a logarithm, has converged too.
    return jnp.finfo(a.dtype).eps ** 1.5
