"""What `SequenceVAE` learns: the likelihood of a linear model, and calibrated forecasts of a nonlinear one."""

import numpy as np
import pytest

from aevb import SequenceVAE

pytestmark = pytest.mark.slow
A, C = np.array([[0.9, 0.2], [-0.2, 0.8]]), np.array([[1.0, 0.5], [0.0, 1.0], [1.0, -1.0]])
Q, R = 0.16 * np.eye(2), 0.25 * np.eye(3)
T = 20


def linear_system(num, rng):
    """Return sequences of a linear-Gaussian state-space model, (num, T, 3)."""
    z, steps = rng.normal(size=(num, 2)), []
    for t in range(T):
        z = z @ A.T + 0.4 * rng.normal(size=z.shape) if t else z
        steps.append(z @ C.T + 0.5 * rng.normal(size=(num, 3)))
    return np.stack(steps, axis=1)


def kalman_filter(X):
    """Return log p(x) of each sequence under that model, in float64."""
    values, mean, cov = np.zeros(len(X)), np.zeros((len(X), 2)), np.eye(2)
    for t in range(T):
        if t:
            mean, cov = mean @ A.T, A @ cov @ A.T + Q
        S = C @ cov @ C.T + R
        residual, inverse = X[:, t] - mean @ C.T, np.linalg.inv(S)
        values -= (np.einsum("ni,ij,nj->n", residual, inverse, residual) + np.linalg.slogdet(2 * np.pi * S)[1]) / 2
        gain = cov @ C.T @ inverse
        mean, cov = mean + residual @ gain.T, cov - gain @ C @ cov
    return values


def test_learning_comes_within_hundredths_of_a_nat_of_the_kalman_filter():
    """0.008 nats per step below it on new sequences when written; it cannot be above but by chance (3 std. errors)."""
    rng = np.random.default_rng(0)
    train, test = linear_system(1000, rng), linear_system(500, rng)
    model = SequenceVAE(2, transition="linear", hidden=(), recurrent_size=32, learning_rate=3e-3, progress=False)

    bounds, exact = model.fit(train).score_samples(test), kalman_filter(test)

    gap = (exact - bounds) / T
    assert -3 * gap.std() / np.sqrt(len(gap)) < gap.mean() < 0.02


def oscillators(num, rng, num_steps):
    """Return sequences of a nonlinear oscillator with noise in its phase and amplitude, (num, num_steps, 1)."""
    phase, r, steps = rng.uniform(0, 2 * np.pi, num), 1 + 0.3 * rng.normal(size=num), []
    for _ in range(num_steps):
        phase = phase + 0.35 + 0.15 * np.sin(phase) + 0.08 * rng.normal(size=num)
        r = 1 + 0.8 * (r - 1) + 0.1 * rng.normal(size=num)
        steps.append(r * np.sin(phase) ** 3 + 0.5 * r * np.cos(phase) + 0.1 * rng.normal(size=num))
    return np.array(steps).T[..., None]


def test_forecasts_of_a_nonlinear_system_are_calibrated():
    """90% intervals cover 94% of 12 steps of 300 new sequences when written."""
    rng = np.random.default_rng(0)
    train, test = oscillators(400, rng, 40), oscillators(300, rng, 52)
    sizes = {"hidden": (32,), "transition_hidden": (32,), "recurrent_size": 48}
    model = SequenceVAE(4, **sizes, max_epochs=150, learning_rate=3e-3, progress=False).fit(train)

    forecast = model.forecast(test[:, :40], steps=12, num_draws=400)

    low, high = np.moveaxis(forecast.interval(0.9), -1, 0)
    future = test[:, 40:]
    assert 0.85 < np.mean((low <= future) & (future <= high)) < 0.96
    assert np.sqrt(np.mean((forecast.mean - future) ** 2)) < 0.45 * future.std()
