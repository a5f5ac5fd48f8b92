"""The gamma and beta quantiles against SciPy, on logarithmic coordinates that keep extreme shapes in range.

A quantile is accurate if the probability beyond it, in the nearer tail, is accurate: this test also works at shapes
where SciPy's own quantiles underflow. Derivatives are compared with -(dF/dphi) / q, with dF/dphi from central
differences of SciPy.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from aevb.distributions._beta_quantile import logit_beta_quantile
from aevb.distributions._gamma_quantile import log_gamma_quantile

PRECISIONS = [
    pytest.param(np.float32, id="float32", marks=pytest.mark.thorough),
    pytest.param(np.float64, id="float64", marks=pytest.mark.float64),
]
each_precision = pytest.mark.parametrize("dtype", PRECISIONS)
# float32 represents a quantile to about 2^-24 of the range of log z, and its derivative to a few digits less.
VALUE_TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}
SLOPE_TOLERANCE = {np.float32: 1e-3, np.float64: 1e-6}

GAMMA_SHAPES = np.array([0.01, 0.05, 0.5, 1.0, 2.0, 10.1, 500.0, 5000.0])
BETA_SHAPES = np.array(
    [
        (0.05, 0.05),
        (0.05, 1.0),
        (0.5, 0.5),
        (1.0, 1.0),  # at integer shapes the continued fraction terminates early, its derivative does not
        (1.0, 4.0),
        (2.0, 3.0),
        (30.0, 7.0),
        (500.0, 0.05),
        (0.05, 500.0),
        (500.0, 2.0),
        (500.0, 500.0),
    ]
)


def probabilities(dtype):
    """From the smallest to the largest number of type `dtype` between 0 and 1, (17,)."""
    lower = np.concatenate([[1e-30, 1e-12], np.geomspace(1e-6, 0.5, 8)])
    upper = 1 - np.geomspace(4 * np.finfo(dtype).eps, 0.4, 7)
    return np.concatenate([lower, upper]).astype(dtype)


@cache
def program(function):
    def evaluate(*arguments):
        value, pull_back = jax.vjp(function, *arguments)
        return value, pull_back(jnp.ones_like(value))

    return jax.jit(evaluate)


def values_and_slopes(function, *arguments):
    """Return `function(*arguments)` and its derivative in each argument, elementwise."""

    value, slopes = program(function)(*arguments)
    assert value.dtype == arguments[0].dtype
    return np.asarray(value, np.float64), [np.asarray(slope, np.float64) for slope in slopes]


def central_difference(function, x):
    h = 1e-3 * np.minimum(x, np.sqrt(x))  # a small part of the spread of the distribution
    return (8 * (function(x + h) - function(x - h)) - (function(x + 2 * h) - function(x - 2 * h))) / (12 * h)


def implicit(log_tail, parameter, u, log_density):
    """Return -(dF/dphi) / q from the log of the smaller tail at u."""
    signed_tail = np.where(u <= 0.5, u, u - 1)
    return -signed_tail * central_difference(log_tail, parameter) / np.exp(log_density)


def assert_slopes_close(slope, expected, dtype):
    """Relative to the slope, or to a hundredth of its median where it passes through zero."""
    size = np.maximum(np.abs(expected), 0.01 * np.median(np.abs(expected), axis=-1, keepdims=True))
    assert (np.abs(slope - expected) / size).max() < SLOPE_TOLERANCE[dtype]


# ---- gamma -----------------------------------------------------------------------------------------------------------


def gamma_case(dtype):
    a, u = np.broadcast_arrays(GAMMA_SHAPES.astype(dtype)[:, None], probabilities(dtype))
    return a.copy(), u.copy()


@each_precision
def test_gamma_quantile_agrees_with_scipy(dtype):
    a, u = gamma_case(dtype)
    t, _ = values_and_slopes(log_gamma_quantile, a, u)
    a, u = a.astype(np.float64), u.astype(np.float64)
    with np.errstate(divide="ignore"):
        expected = np.log(np.where(u <= 0.5, special.gammaincinv(a, u), special.gammainccinv(a, 1 - u)))
    held = expected > -600  # below, SciPy's quantile underflows, where P(a, z) = z^a / Gamma(a + 1)
    expected = np.where(held, expected, (np.log(u) + special.gammaln(a + 1)) / a)
    assert held.mean() > 0.8
    error = np.abs(t - expected) / np.maximum(np.abs(expected), 1)
    # At shape 0.01 float32 rounds the upper tail, a difference of numbers close to 1.
    tolerance = np.where((a < 0.05) & (dtype == np.float32), 5e-4, VALUE_TOLERANCE[dtype])
    assert (error < tolerance).all()


@each_precision
def test_gamma_quantile_has_the_implicit_derivatives(dtype):
    a, u = gamma_case(dtype)
    _, (slope_a, slope_u) = values_and_slopes(log_gamma_quantile, a, u)
    a, u = a.astype(np.float64), u.astype(np.float64)
    with jax.enable_x64(True):
        t, _ = values_and_slopes(log_gamma_quantile, a, u)

    # Below z = 1e-280 P(a, z) = z^a / Gamma(a + 1) to all digits, and so t = (log u + log Gamma(a + 1)) / a.
    tiny = t < -640
    z = np.exp(np.where(tiny, 0.0, t))
    log_density = a * t - z - special.gammaln(a)  # of log z

    def log_tail(a):  # smoother than the tail itself
        return np.log(np.where(u <= 0.5, special.gammainc(a, z), special.gammaincc(a, z)))

    expected_a = np.where(tiny, (special.digamma(a + 1) - t) / a, implicit(log_tail, a, u, log_density))
    assert_slopes_close(slope_a, expected_a, dtype)
    assert_slopes_close(slope_u * u, np.where(tiny, 1 / a, u / np.exp(log_density)), dtype)


# ---- beta ------------------------------------------------------------------------------------------------------------


def beta_case(dtype):
    a, b, u = np.broadcast_arrays(*BETA_SHAPES.astype(dtype).T[:, :, None], probabilities(dtype))
    return a.copy(), b.copy(), u.copy()


def beta_tails(a, b, t):
    """Return I_z(a, b) and its complement at z = sigmoid(t)."""

    def lower(a, b, t):
        by_series = special.betainc(a, b, special.expit(t))
        # Close to z = 1 only 1 - z is accurate to all digits; far from it the first term of the power series is exact.
        by_complement = special.betaincc(b, a, special.expit(-t))
        first_term = np.exp(np.minimum(a * t - np.log(a) - special.betaln(a, b), 0))
        return np.select([t > 0, t > -600], [by_complement, by_series], first_term)

    return lower(a, b, t), lower(b, a, -t)


def log_beta_density(a, b, t):
    return a * special.log_expit(t) + b * special.log_expit(-t) - special.betaln(a, b)


@each_precision
def test_beta_quantile_has_the_correct_tail_probability(dtype):
    a, b, u = beta_case(dtype)
    t, _ = values_and_slopes(logit_beta_quantile, a, b, u)
    assert np.isfinite(t).all()
    a, b, u = (argument.astype(np.float64) for argument in (a, b, u))
    tail, expected = np.where(u <= 0.5, *beta_tails(a, b, t)), np.where(u <= 0.5, u, 1 - u)
    # An error in t changes the log of the tail by that error times density / tail.
    sensitivity = np.exp(log_beta_density(a, b, t)) / expected
    error = np.abs(np.log(tail / expected)) / np.maximum(sensitivity, 1e-3)
    assert (error / np.maximum(np.abs(t), 1)).max() < VALUE_TOLERANCE[dtype]


@each_precision
def test_beta_quantile_has_the_implicit_derivatives(dtype):
    a, b, u = beta_case(dtype)
    _, (slope_a, slope_b, slope_u) = values_and_slopes(logit_beta_quantile, a, b, u)
    a, b, u = (argument.astype(np.float64) for argument in (a, b, u))
    with jax.enable_x64(True):
        t, _ = values_and_slopes(logit_beta_quantile, a, b, u)
    log_density = log_beta_density(a, b, t)

    def log_tail(a, b):
        return np.log(np.where(u <= 0.5, *beta_tails(a, b, t)))

    assert_slopes_close(slope_a, implicit(lambda a: log_tail(a, b), a, u, log_density), dtype)
    assert_slopes_close(slope_b, implicit(lambda b: log_tail(a, b), b, u, log_density), dtype)
    assert_slopes_close(slope_u * u, u / np.exp(log_density), dtype)


@pytest.mark.float64
def test_beta_quantile_is_antisymmetric():
    """Swapping the shapes swaps the tails: the logit changes its sign."""
    a, b, u = np.broadcast_arrays(*BETA_SHAPES.T[:, :, None], np.linspace(0.25, 0.75, len(probabilities(float))))
    value, _ = values_and_slopes(logit_beta_quantile, a, b, u)
    mirrored, _ = values_and_slopes(logit_beta_quantile, b, a, 1 - u)
    np.testing.assert_allclose(value, -mirrored, rtol=1e-12, atol=1e-12)


@pytest.mark.float64
@pytest.mark.parametrize(
    ("function", "case"), [(log_gamma_quantile, gamma_case), (logit_beta_quantile, beta_case)], ids=["gamma", "beta"]
)
def test_a_quantile_does_not_depend_on_the_other_elements(function, case):
    """Loops run until the slowest element is done; integer shapes, where fractions end early, are also tested alone."""
    arguments = case(np.float64)
    value, slopes = values_and_slopes(function, *arguments)
    for row in np.flatnonzero(np.all([argument[:, 0] % 1 == 0 for argument in arguments[:-1]], axis=0)):
        alone = [np.broadcast_to(argument[row], argument.shape) for argument in arguments]  # among copies of itself
        value_alone, slopes_alone = values_and_slopes(function, *alone)
        np.testing.assert_allclose(value_alone[0], value[row], rtol=1e-12, atol=1e-12)
        for slope_alone, slope in zip(slopes_alone, slopes, strict=True):
            np.testing.assert_allclose(slope_alone[0], slope[row], rtol=1e-9, atol=1e-12)
