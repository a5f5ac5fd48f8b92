import numpy as np
import pytest
from scipy.stats import bernoulli

from aevb.report import grey_level_ceiling, independent_pixels


def test_ceiling_is_the_largest_value_of_the_bernoulli_term():
    X = np.array([[0.2, 0.0, 1.0], [0.7, 0.5, 0.9]])
    y = np.clip(X, 1e-12, 1 - 1e-12)
    best = np.mean(np.sum(X * np.log(y) + (1 - X) * np.log(1 - y), axis=1))
    assert grey_level_ceiling(X) == pytest.approx(best, abs=1e-9)
    other = np.clip(y + 0.05, 1e-12, 1 - 1e-12)
    assert np.mean(np.sum(X * np.log(other) + (1 - X) * np.log(1 - other), axis=1)) < best


def test_ceiling_of_binary_data_is_zero():
    assert grey_level_ceiling(np.eye(3)) == 0


def test_independent_pixels_is_a_log_likelihood():
    generator = np.random.default_rng(0)
    train, X = generator.integers(0, 2, (50, 4)), generator.integers(0, 2, (20, 4))
    means = (train.sum(axis=0) + 1) / 52
    expected = bernoulli(means).logpmf(X).sum(axis=1).mean()
    assert independent_pixels(train, X) == pytest.approx(expected)


def test_a_pixel_never_seen_on_is_not_impossible():
    assert np.isfinite(independent_pixels(np.zeros((10, 1)), np.ones((1, 1))))
