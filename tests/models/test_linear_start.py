"""A deep Gaussian model that starts as factor analysis or PCA is that model exactly."""

from functools import partial

import jax
import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis

from aevb.models import assemble
from aevb.models.linear_choice import fit_linear
from aevb.models.linear_model import MIN_VARIANCE, Weighted, factor_analysis, pca
from aevb.models.linear_start import linear_network, start_linear
from aevb.networks import MLP, initialize

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 2)) @ RNG.normal(size=(2, 5)) + 0.5 * RNG.normal(size=(200, 5))
X = (X - X.mean(0)) / X.std(0)
UNITS = np.zeros(5, np.float32), np.ones(5, np.float32)


@pytest.mark.parametrize("hidden", [(), (8,), (9, 12)])
def test_a_network_of_mirrored_units_is_a_linear_map(hidden):
    matrix, bias, x = RNG.normal(size=(3, 4)), RNG.normal(size=3), RNG.normal(size=4)
    network = initialize(MLP(4, hidden, 3, "gelu"), jax.random.key(0))
    np.testing.assert_allclose(linear_network(network, matrix, bias)(x), matrix @ x + bias, rtol=1e-4, atol=1e-5)


def test_the_bound_at_the_start_is_the_log_likelihood_of_the_linear_model():
    """The posterior is diagonal and in the encoder's family, so log p(x, z) - log q(z|x) is log p(x) for every z."""
    models = assemble((5, 2, (10,)), "gaussian", "gelu", UNITS, "glorot", jax.random.key(0))
    generative, recognition = start_linear(models, X)
    linear = fit_linear(X, 2)
    covariance = linear.weight @ linear.weight.T + np.diag(linear.variances)
    expected = multivariate_normal(linear.bias, covariance).logpdf(X)
    x = X.astype(np.float32)

    @jax.jit
    def log_ratio(x, key):
        q = recognition(x)
        z = q.sample(key)
        return generative.log_joint(x, z) - q.log_prob(z)

    for seed in range(2):
        found = jax.vmap(log_ratio)(x, jax.random.split(jax.random.key(seed), len(x)))
        np.testing.assert_allclose(found, expected, atol=2e-3)
    assert expected.mean() > multivariate_normal(np.zeros(5), np.eye(5)).logpdf(X).mean() + 1


def test_models_that_cannot_start_linear_are_unchanged():
    for setting in (((5, 2, (3,)), "gaussian", "gelu"), ((5, 2, (10,)), "gaussian", "tanh")):
        models = assemble(*setting, UNITS, "glorot", jax.random.key(0))
        assert start_linear(models, X) is models
    assert fit_linear(X, 7).weight.shape == (5, 7)
    assert fit_linear(X, 2).variances.min() >= MIN_VARIANCE


def test_the_density_of_a_linear_model_is_that_of_a_gaussian():
    linear = fit_linear(X, 2)
    covariance = linear.weight @ linear.weight.T + np.diag(linear.variances)
    np.testing.assert_allclose(linear.log_prob(X), multivariate_normal(linear.bias, covariance).logpdf(X))


def test_few_rows_get_a_weak_prior():
    """Maximum likelihood of 20 rows leaves some columns almost no noise, which costs it on new rows."""
    generator = np.random.default_rng(1)
    weight, noise = generator.normal(size=(2, 8)), np.geomspace(0.1, 2, 8)
    rows, new = (generator.normal(size=(n, 2)) @ weight + noise * generator.normal(size=(n, 8)) for n in (20, 1000))
    mean, std = rows.mean(axis=0), rows.std(axis=0)
    rows, new = (rows - mean) / std, (new - mean) / std
    plain = FactorAnalysis(2, svd_method="lapack", max_iter=2000, tol=1e-4).fit(rows)
    assert fit_linear(rows, 2).log_prob(new).mean() > plain.score(new) + 0.3


@pytest.mark.parametrize("kind", [pca, partial(factor_analysis, prior_rows=1)])
def test_weights_are_repeated_rows_in_closed_form(kind):
    counts = RNG.integers(1, 5, size=200)
    weighted = kind(Weighted(X, counts.astype(float)), 2)
    repeated = kind(Weighted(np.repeat(X, counts, axis=0), None), 2)
    np.testing.assert_allclose(weighted.log_prob(X), repeated.log_prob(X), rtol=1e-8)
    equal = kind(Weighted(X, None), 2)
    assert abs(weighted.log_prob(X) - equal.log_prob(X)).max() > 0.01


@pytest.mark.thorough
def test_the_start_follows_the_weights():
    """Rows of two linear models, of which one has nearly all the weight: the start is that one."""
    other = RNG.normal(size=(200, 2)) @ RNG.normal(size=(2, 5)) + 0.5 * RNG.normal(size=(200, 5)) + 3
    weights = np.r_[np.ones(200), np.full(200, 1e-9)]
    linear = fit_linear(np.vstack([X, other]), 2, weights)
    np.testing.assert_allclose(linear.log_prob(X).mean(), fit_linear(X, 2).log_prob(X).mean(), atol=0.02)
    models = assemble((5, 2, (10,)), "gaussian", "gelu", UNITS, "glorot", jax.random.key(0))
    generative, _ = start_linear(models, np.vstack([X, other]), weights)
    np.testing.assert_allclose(generative.decoder(np.zeros(2, np.float32)).mean, linear.bias, atol=1e-5)
