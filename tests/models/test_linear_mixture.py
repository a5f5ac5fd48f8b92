"""Linear models with a mixture of Gaussians over z: their density is a Gaussian mixture in closed form."""

import jax
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from aevb.inference.marginal_likelihood import log_likelihood
from aevb.models import GenerativeModel, MixturePrior, assemble, form_of
from aevb.models.linear_choice import Candidate, fit_linear
from aevb.models.linear_mixture import linear_mixture
from aevb.models.linear_model import Weighted, padded
from aevb.models.linear_start import start_linear

RNG = np.random.default_rng(0)
CENTERS = np.array([[-2.0, 0.0], [2.0, 1.0], [0.0, -2.0]])
Z = CENTERS[RNG.integers(3, size=300)] + RNG.normal(size=(300, 2)) @ np.array([[0.5, 0.2], [0.0, 0.4]])
X = Z @ RNG.normal(size=(2, 4)) + 0.4 * RNG.normal(size=(300, 4))
X = (X - X.mean(0)) / X.std(0)
UNITS = np.zeros(4, np.float32), np.ones(4, np.float32)
BOTH = ("standard", "mixture")


def exact(linear, rows):
    """Return log p(x), (n,), of the Gaussian mixture that a linear model is."""
    W, noise = linear.weight, np.diag(linear.variances)
    shares, means, covariances = linear.components
    terms = [
        np.log(share) + multivariate_normal(W @ mean + linear.bias, W @ covariance @ W.T + noise).logpdf(rows)
        for share, mean, covariance in zip(shares, means, covariances, strict=True)
    ]
    return logsumexp(terms, axis=0)


@pytest.mark.parametrize("latent_dim", [1, 2, 4])
def test_the_density_is_that_of_a_gaussian_mixture_with_unit_covariance_of_z(latent_dim):
    linear = padded(linear_mixture(Weighted(X), latent_dim, 3, 2.0), latent_dim + 1)
    np.testing.assert_allclose(linear.log_prob(X), exact(linear, X), rtol=1e-8)
    np.testing.assert_allclose(linear.components.covariance, np.eye(latent_dim + 1), atol=1e-8)
    information = linear.information
    np.testing.assert_allclose(information, np.diag(np.diag(information)), atol=1e-8 * information.max())


def test_with_a_latent_variable_for_each_column_em_is_that_of_a_gaussian_mixture():
    linear = linear_mixture(Weighted(X), 4, 3, 0.0, num_starts=5)
    theirs = GaussianMixture(3, n_init=5, tol=1e-4, reg_covar=1e-4, random_state=0).fit(X)
    assert abs(linear.log_prob(X).mean() - theirs.score(X)) < 0.01


def test_common_loadings_are_found():
    """The data are a mixture in a plane: two latent variables are enough, and as good on new rows as four."""
    two, four = (linear_mixture(Weighted(X[:200]), J, 3, 2.0).log_prob(X[200:]).mean() for J in (2, 4))
    assert two > four - 0.05


def test_weights_are_repeated_rows():
    counts = RNG.integers(1, 4, size=len(X))
    for candidate in (Candidate(2, 2, 2.0), Candidate(4, 2, 2.0)):
        weighted = candidate.fit(Weighted(X, counts.astype(float)), quickly=True)
        repeated = candidate.fit(Weighted(np.repeat(X, counts, axis=0)), quickly=True)
        np.testing.assert_allclose(weighted.log_prob(X).mean(), repeated.log_prob(X).mean(), atol=2e-2)


@pytest.mark.thorough
def test_cross_validation_chooses_a_mixture_only_where_there_is_one():
    assert len(fit_linear(X, 2, priors=BOTH).components.shares) >= 3
    gaussian = RNG.normal(size=(300, 2)) @ RNG.normal(size=(2, 4)) + 0.4 * RNG.normal(size=(300, 4))
    assert fit_linear((gaussian - gaussian.mean(0)) / gaussian.std(0), 2, priors=BOTH).components is None
    assert fit_linear(X, 2).components is None


def _started(latent_dim, **options):
    models = assemble((4, latent_dim, (20,)), "gaussian", "gelu", UNITS, "glorot", jax.random.key(0))
    return start_linear(models, X, priors=("mixture",), **options)


@pytest.mark.thorough
def test_a_deep_model_starts_as_the_linear_mixture():
    """log p(x) by quadrature over z is the closed form, and the bound is below it by little."""
    generative, recognition = _started(2)
    linear = fit_linear(X, 2, priors=("mixture",))
    rows, expected = X[:20].astype(np.float32), exact(linear, X[:20])
    found = log_likelihood(generative, None, rows, jax.random.key(0), "quadrature").values
    np.testing.assert_allclose(found, expected, atol=5e-3)

    @jax.jit
    def bound(x, key):
        q = recognition(x)
        z = q.sample(key, (1000,))
        return jax.vmap(lambda z: generative.log_joint(x, z) - q.log_prob(z))(z).mean()

    bounds = jax.vmap(bound)(X.astype(np.float32), jax.random.split(jax.random.key(1), len(X)))
    gaps = exact(linear, X) - bounds
    assert gaps.min() > -0.1  # 1,000 draws with standard deviations of about 0.5: six standard errors
    assert gaps.mean() < 0.5


@pytest.mark.thorough
def test_one_component_is_the_exact_posterior():
    """With one component the start is a linear-Gaussian model: log p(x, z) - log q(z|x) is log p(x) for every z."""
    linear = fit_linear(X, 2)
    models = assemble((4, 2, (20,)), "gaussian", "gelu", UNITS, "glorot", jax.random.key(0))
    generative, recognition = start_linear(models, X)
    shares, means, covariances = np.ones(1), np.zeros((1, 2)), np.eye(2)[None]
    from aevb.models.priors import prior_from

    generative = GenerativeModel(prior_from(shares, means, covariances), generative.decoder)
    x = X[0].astype(np.float32)
    for seed in range(3):
        z = recognition(x).sample(jax.random.key(seed))
        ratio = generative.log_joint(x, z) - recognition(x).log_prob(z)
        np.testing.assert_allclose(ratio, linear.log_prob(X[:1])[0], atol=2e-3)


@pytest.mark.thorough
def test_importance_sampling_agrees_with_quadrature():
    """Within five standard errors for each of 20 rows: a false alarm once in 90,000 runs."""
    generative, recognition = _started(1)
    rows = X[:20].astype(np.float32)
    exact_values = log_likelihood(generative, None, rows, jax.random.key(0), "quadrature").values
    found = log_likelihood(generative, recognition, rows, jax.random.key(1), "importance", num_samples=5000)
    assert (abs(found.values - exact_values) < 5 * found.std_errors + 1e-3).all()


def test_forms_are_recognized():
    generative, _ = _started(2, sizes=(3,))
    assert isinstance(generative.prior, MixturePrior)
    assert form_of(generative.prior) == ("mixture", 3)
    assert form_of(form_of(generative.prior).build(2)) == ("mixture", 3)
