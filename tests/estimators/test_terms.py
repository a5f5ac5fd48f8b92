import jax
import numpy as np
import pytest
from scipy.stats import norm

from aevb.estimators import ESTIMATORS, with_terms
from aevb.models import standard_models
from aevb.networks import initialize

X = np.array([0.0, 1.0, 1.0, 0.0])
EPSILON = np.random.default_rng(0).normal(size=(3, 2))


@jax.jit
def encode(recognition, x):
    q = recognition(x)
    return q.mean, q.variance


@jax.jit
def decode(generative, z):
    return generative.decoder(z).mean


@pytest.mark.float64
@pytest.mark.parametrize("name", ["sgvb-a", "sgvb-b", "score-function"])
def test_terms_against_the_formula(name):
    generative, recognition = initialize(standard_models(4, 2, (3,), "bernoulli"), jax.random.key(0), "paper")
    found = jax.jit(with_terms(ESTIMATORS[name]))(generative, recognition, X, EPSILON)
    mu, variance = map(np.asarray, encode(recognition, X))
    sigma = np.sqrt(variance)
    z = mu + sigma * EPSILON
    y = np.array([decode(generative, one) for one in z])
    reconstruction = np.mean(np.sum(X * np.log(y) + (1 - X) * np.log(1 - y), axis=1))
    kl = np.mean(np.sum(norm.logpdf(z, mu, sigma) - norm.logpdf(z), axis=1))  # sampled, or by appendix B
    if name == "sgvb-b":
        kl = -np.sum(1 + np.log(sigma**2) - mu**2 - sigma**2) / 2
    np.testing.assert_allclose(found[:3], [reconstruction - kl, reconstruction, kl], rtol=1e-9)
    assert found.level_divergences is None  # there is one level


def test_a_bound_that_is_not_a_difference_of_two_terms_has_none():
    models = initialize(standard_models(4, 2, (3,), "bernoulli"), jax.random.key(0), "paper")
    arguments = *models, X.astype(np.float32), EPSILON.astype(np.float32)
    bound, *terms = jax.jit(with_terms(ESTIMATORS["importance"]))(*arguments)
    assert bound == jax.jit(ESTIMATORS["importance"])(*arguments)
    assert set(terms) == {None}
