"""What the quantiles of the gamma and beta distributions share: Stirling's remainder, continued fractions, Newton."""

import math

import jax.numpy as jnp
from jax import lax

MAX_TERMS = 20_000  # enough for shapes up to about 1e6 in float64: the sums need about sqrt(80 a) terms
_MAX_NEWTON_STEPS = 60


def promoted(*arguments):
    """Return the arguments as arrays of one floating type and one shape."""
    dtype = jnp.result_type(float, *arguments)
    return jnp.broadcast_arrays(*(jnp.asarray(argument, dtype) for argument in arguments))


def stirling_remainder(a):
    """Return log Gamma(a) - (a log a - a), without cancellation for large a (DLMF 5.11.1)."""
    large = a > 10
    inverse = 1 / jnp.where(large, a, 10.0)
    coefficients = [1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12]
    series = inverse * jnp.polyval(jnp.asarray(coefficients, a.dtype), inverse**2)
    small = jnp.where(large, 1.0, a)
    direct = lax.lgamma(small) - small * jnp.log(small) + small
    return jnp.where(large, 0.5 * jnp.log(2 * jnp.pi * inverse) + series, direct)


def continued_fraction(b0, coefficients):
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
        return (n < MAX_TERMS) & ((n < min_terms) | jnp.any(change > 4 * eps))

    start = away_from_zero(b0)
    initial = (1, start, start, jnp.zeros_like(b0), jnp.full_like(b0, jnp.inf))
    return lax.while_loop(unfinished, body, initial)[1]


def iterate_newton(newton_step, start):
    """Repeat a step ``d -> d'`` of Newton's method from `start`, for all elements until the last has converged."""

    def body(carry):
        n, d, _ = carry
        update = newton_step(d)
        return n + 1, update, jnp.abs(update - d) / (1 + jnp.abs(d))

    def unfinished(carry):
        n, _, change = carry
        # Convergence is quadratic: after a change of eps^0.6 the remaining error is below rounding.
        return (n < _MAX_NEWTON_STEPS) & jnp.any(change > jnp.finfo(start.dtype).eps ** 0.6)

    return lax.while_loop(unfinished, body, (0, start, jnp.full_like(start, jnp.inf)))[1]


def log_tail_probability(u, is_lower):
    """Return log u where the lower tail is meant, log(1 - u) elsewhere."""
    return jnp.where(is_lower, jnp.log(u), jnp.log1p(-u))


def log1mexp(log_p):
    """Return log(1 - p) from log p."""
    return jnp.log(-jnp.expm1(log_p))
