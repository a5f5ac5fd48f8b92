"""k-hat of weights with a known tail."""

import numpy as np
import pytest

from aevb.inference.pareto import k_hat_threshold, pareto_k_hat


@pytest.mark.parametrize("k", [0.3, 0.5, 0.7, 1.0, 1.5])
def test_pareto_weights_of_known_shape(k):
    """w = u^-k has a Pareto tail of shape k; the weak prior pulls the estimate towards 1/2 by 10 / (10 + tail)."""
    log_weights = np.random.default_rng(0).exponential(k, size=(300, 4000))
    expected = (190 * k + 10 * 0.5) / 200
    estimates = pareto_k_hat(log_weights)
    assert estimates.shape == (300,)
    # The estimator's bias is 0.017 at most (at k = 1.5, 1500 rows); 5 standard errors are one seed in 1.7 million.
    assert abs(estimates.mean() - expected) < 0.02 + 5 * estimates.std() / np.sqrt(300)
    assert estimates.std() < 1.5 * (1 + k) / np.sqrt(190)  # the asymptotic standard deviation is (1 + k) / sqrt(n)


def test_importance_weights_of_gaussians():
    """For a proposal N(0, s^2) and target N(0, 1) the shape is 1 - s^2 if s < 1.

    Otherwise weights are bounded: w = c exp(-t^2) near t = 0 has density (c - w)^(-1/2) there, which is shape -2.
    """
    z = np.random.default_rng(1).normal(size=(200, 20_000))
    for s, low, high in [(1.2, -2.1, -1.5), (0.6, 0.45, 0.8)]:
        log_weights = -((s * z) ** 2) / 2 + z**2 / 2
        assert low < pareto_k_hat(log_weights).mean() < high


def test_shift_and_order_do_not_matter():
    log_weights = np.random.default_rng(2).normal(size=(5, 1000))
    expected = pareto_k_hat(log_weights)
    np.testing.assert_allclose(pareto_k_hat(log_weights[:, ::-1] - 1e4), expected, rtol=1e-6)


def test_degenerate_weights():
    assert pareto_k_hat(np.zeros((2, 1000))).tolist() == [-np.inf, -np.inf]
    assert np.isnan(pareto_k_hat(np.zeros(20)))
    assert pareto_k_hat(50 * np.random.default_rng(0).normal(size=1000)) > 1  # one weight dominates


@pytest.mark.thorough  # ArviZ takes two seconds to load
@pytest.mark.filterwarnings("ignore::FutureWarning")  # ArviZ announces its next version once a day
def test_it_agrees_with_arviz():
    arviz = pytest.importorskip("arviz")
    log_weights = np.random.default_rng(0).standard_t(4, size=(20, 1000))
    np.testing.assert_allclose(pareto_k_hat(log_weights), np.asarray(arviz.psislw(log_weights)[1]), rtol=1e-10)


def test_threshold():
    np.testing.assert_allclose([k_hat_threshold(100), k_hat_threshold(1000), k_hat_threshold(10**6)], [0.5, 2 / 3, 0.7])
