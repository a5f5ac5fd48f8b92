"""A conditional model by `VAE(conditional=True)`, against the closed form of the linear-Gaussian one."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from aevb import VAE

W, B, BIAS, NOISE = np.array([[1.0], [-0.5], [0.8]]), np.array([[0.7], [1.5], [0.0]]), np.array([0.3, 0, -1]), 0.5


def rows(num, seed):
    """Return draws of x = W z + B y + b + noise, their y, and log p(x|y)."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(num, 1))
    spread = W @ W.T + NOISE**2 * np.eye(3)
    x = y @ B.T + BIAS + rng.multivariate_normal(np.zeros(3), spread, num)
    return x, y[:, 0], multivariate_normal(np.zeros(3), spread).logpdf(x - y @ B.T - BIAS)


@pytest.fixture(scope="module")
def fitted():
    x, y, _ = rows(20_000, 0)
    return VAE(1, conditional=True, hidden=(30,), likelihood="gaussian", progress=False).fit(x, y)


@pytest.mark.thorough
def test_learning_reaches_the_exact_conditional_likelihood(fitted):
    # For the same rows only what was learned differs; seen: 0.0002 nats.
    x, y, exact = rows(4000, 1)
    found = fitted.log_likelihood(x, y, method="quadrature")
    assert found.values.mean() == pytest.approx(exact.mean(), abs=0.02)
    bound = fitted.score_samples(x, y, num_samples=10)
    assert bound.mean() < exact.mean() + 0.005  # the bound, below log p(x|y) but for sampling
    assert bound.mean() == pytest.approx(exact.mean(), abs=0.02)


@pytest.mark.thorough
def test_draws_and_counterfactuals_have_the_exact_means(fitted):
    # Means of 4,000 draws: a standard error of 0.018 at most; 4 of them, for 6 numbers: one false alarm in 2,600.
    for y in (-1.0, 2.0):
        drawn = fitted.sample(4000, y=y)
        np.testing.assert_allclose(drawn.mean(axis=0), BIAS + B[:, 0] * y, atol=0.072 + 0.02)
    x, y, _ = rows(500, 2)
    moved = fitted.counterfactual(x, y, y + 1) - fitted.reconstruct(x, y)
    np.testing.assert_allclose(moved.mean(axis=0), B[:, 0], atol=0.03)  # the networks are nearly linear


@pytest.mark.thorough
def test_a_wrong_condition_costs_what_it_should(fitted):
    x, y, exact = rows(2000, 3)
    known = np.abs(y + 0.5) < 1.5  # where both conditions lie within the training data: networks extrapolate otherwise
    x, y, exact = x[known], y[known], exact[known]
    spread = W @ W.T + NOISE**2 * np.eye(3)
    wrong = multivariate_normal(np.zeros(3), spread).logpdf(x - (y[:, None] + 1) @ B.T - BIAS)
    found = (
        fitted.log_likelihood(x, y, method="quadrature").values
        - fitted.log_likelihood(x, y + 1, method="quadrature").values
    )
    assert found.mean() == pytest.approx((exact - wrong).mean(), rel=0.03)
