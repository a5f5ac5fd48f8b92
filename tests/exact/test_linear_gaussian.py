"""Linear-Gaussian models, where the likelihood, the posterior and the bound have closed forms.

p(z) = N(0, I), p(x|z) = N(Wz + b, sigma^2 I), q(z|x) = N(Vx + c, S).

Averages of `NUM_DRAWS` independent values are compared within 5 standard errors: each comparison fails by chance once
in 1.7 million seeds, and there are fewer than a hundred.
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from jax import Array
from scipy.stats import multivariate_normal

from aevb.estimators import importance, sgvb_a, sgvb_b
from aevb.models import GenerativeModel, RecognitionModel, standard_normal

pytestmark = pytest.mark.float64

NUM_DRAWS = 20_000
SIZES = [pytest.param((1, 1), marks=pytest.mark.slow), (3, 5), pytest.param((20, 3), marks=pytest.mark.slow)]  # (D, J)


class LinearDecoder(eqx.Module):
    weight: Array
    bias: Array
    std: Array

    def __call__(self, z):
        return dist.Normal(self.weight @ z + self.bias, self.std).to_event(1)


class DiagonalEncoder(eqx.Module):
    weight: Array
    bias: Array
    std: Array

    def __call__(self, x):
        return dist.Normal(self.weight @ x + self.bias, self.std).to_event(1)


class FullEncoder(eqx.Module):
    weight: Array
    bias: Array
    scale_tril: Array

    def __call__(self, x):
        return dist.MultivariateNormal(self.weight @ x + self.bias, scale_tril=self.scale_tril)


class Exact(NamedTuple):
    """A model, one datapoint, and their exact properties."""

    decoder: LinearDecoder
    x: np.ndarray
    log_likelihood: float
    gain: np.ndarray  # the posterior mean is gain @ (x - b)
    covariance: np.ndarray  # of the posterior

    @property
    def generative(self):
        return GenerativeModel(standard_normal(self.decoder.weight.shape[1]), self.decoder)

    def lower_bound(self, encoder):
        """log p(x) - KL(q || posterior), eq. (1)."""
        mean = self.gain @ (self.x - np.asarray(self.decoder.bias))
        r = np.asarray(encoder.weight) @ self.x + np.asarray(encoder.bias) - mean
        precision = np.linalg.inv(self.covariance)
        L = np.diag(encoder.std) if isinstance(encoder, DiagonalEncoder) else np.asarray(encoder.scale_tril)
        covariance = L @ L.T
        log_determinants = np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(self.covariance)[1]
        return (
            self.log_likelihood - (np.trace(precision @ covariance) + r @ precision @ r - len(r) - log_determinants) / 2
        )

    def exact_encoder(self):
        return FullEncoder(
            jax.device_put(self.gain),
            jax.device_put(-self.gain @ np.asarray(self.decoder.bias)),
            jax.device_put(np.linalg.cholesky(self.covariance)),
        )

    def random_encoder(self, kind):
        """An encoder that is wrong, but not far from the posterior."""
        rng = np.random.default_rng(1)
        weight = self.gain + 0.1 * rng.normal(size=self.gain.shape)
        bias = 0.3 * rng.normal(size=len(self.gain)) - self.gain @ np.asarray(self.decoder.bias)
        scale_tril = np.linalg.cholesky(self.covariance) * rng.uniform(0.8, 1.3, size=self.covariance.shape)
        if kind == "diagonal":
            return DiagonalEncoder(jax.device_put(weight), jax.device_put(bias), jax.device_put(np.diag(scale_tril)))
        return FullEncoder(jax.device_put(weight), jax.device_put(bias), jax.device_put(scale_tril))


def make_exact(data_dim, latent_dim, orthogonal=False):
    rng = np.random.default_rng(0)
    W = rng.normal(size=(data_dim, latent_dim))
    if orthogonal:
        W = np.linalg.qr(W)[0] * rng.uniform(0.5, 2, size=latent_dim)
    b, std = rng.normal(size=data_dim), 0.7
    x = rng.normal(size=data_dim)
    covariance = np.linalg.inv(np.eye(latent_dim) + W.T @ W / std**2)
    return Exact(
        LinearDecoder(jax.device_put(W), jax.device_put(b), jax.device_put(std)),
        x,
        multivariate_normal(b, W @ W.T + std**2 * np.eye(data_dim)).logpdf(x),
        covariance @ W.T / std**2,
        covariance,
    )


def draw_bounds(estimator, exact, encoder, num_samples=1, num_draws=NUM_DRAWS):
    """Independent values of an estimator, (num_draws,)."""
    return evaluate_bounds(estimator, exact, encoder, draw_noise(exact, encoder, num_samples, num_draws))


def draw_noise(exact, encoder, num_samples, num_draws=NUM_DRAWS):
    return _sample_noise(RecognitionModel(encoder), jax.device_put(exact.x), (num_draws, num_samples))


@partial(jax.jit, static_argnums=2)
def _sample_noise(recognition, x, shape):
    return recognition.noise(x).sample(jax.random.key(2), shape)


def evaluate_bounds(estimator, exact, encoder, noise):
    return np.asarray(_evaluate(estimator, exact.generative, RecognitionModel(encoder), jax.device_put(exact.x), noise))


@partial(jax.jit, static_argnums=0)
def _evaluate(estimator, generative, recognition, x, noise):
    return jax.vmap(lambda epsilon: estimator(generative, recognition, x, epsilon))(noise)


def assert_mean(values, expected):
    standard_error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - expected) < 5 * standard_error


@pytest.mark.parametrize("kind", ["diagonal", "full"])
@pytest.mark.parametrize("size", SIZES)
def test_the_expectation_of_a_and_b_is_the_bound(size, kind):
    exact = make_exact(*size)
    encoder = exact.random_encoder(kind)
    expected = exact.lower_bound(encoder)
    assert expected < exact.log_likelihood - 1e-3
    for estimator in (sgvb_a, sgvb_b):
        assert_mean(draw_bounds(estimator, exact, encoder), expected)


@pytest.mark.parametrize("estimator", [sgvb_a, sgvb_b])
def test_l_samples_have_the_same_expectation_and_the_variance_divided_by_l(estimator):
    exact = make_exact(3, 5)
    encoder = exact.random_encoder("full")
    averages = draw_bounds(estimator, exact, encoder, num_samples=4)
    assert_mean(averages, exact.lower_bound(encoder))
    assert 3.5 < draw_bounds(estimator, exact, encoder).var() / averages.var() < 4.5  # within 5 standard errors


@pytest.mark.parametrize("size", SIZES)
def test_at_the_exact_posterior_the_bounds_are_the_log_likelihood(size):
    exact = make_exact(*size)
    encoder = exact.exact_encoder()
    np.testing.assert_allclose(draw_bounds(sgvb_a, exact, encoder), exact.log_likelihood, rtol=1e-10)  # no variance
    np.testing.assert_allclose(draw_bounds(importance, exact, encoder, 3), exact.log_likelihood, rtol=1e-10)
    assert_mean(draw_bounds(sgvb_b, exact, encoder), exact.log_likelihood)


def test_with_orthogonal_weights_a_diagonal_posterior_is_exact():
    exact = make_exact(6, 3, orthogonal=True)
    full = exact.exact_encoder()
    encoder = DiagonalEncoder(full.weight, full.bias, jax.device_put(np.diag(full.scale_tril)))
    np.testing.assert_allclose(draw_bounds(sgvb_a, exact, encoder), exact.log_likelihood, rtol=1e-10)
    assert_mean(draw_bounds(sgvb_b, exact, encoder), exact.log_likelihood)


@pytest.mark.parametrize("kind", [pytest.param("diagonal", marks=pytest.mark.slow), "full"])
def test_no_bound_exceeds_the_log_likelihood(kind):
    exact = make_exact(3, 5)
    encoder = exact.random_encoder(kind)
    for estimator, num_samples in [(sgvb_a, 1), (sgvb_b, 1), (importance, 1), (importance, 2), (importance, 8)]:
        values = draw_bounds(estimator, exact, encoder, num_samples)
        assert values.mean() < exact.log_likelihood + 5 * values.std() / np.sqrt(len(values))
        if estimator is not importance or num_samples <= 2:
            assert values.mean() < exact.log_likelihood - 5 * values.std() / np.sqrt(
                len(values)
            )  # and the gap is significant


@pytest.mark.thorough
def test_the_importance_bound_rises_with_samples_to_the_log_likelihood():
    exact = make_exact(4, 2)
    encoder = exact.random_encoder("full")
    noise = np.asarray(draw_noise(exact, encoder, 1024, num_draws=200))
    bounds = {
        K: evaluate_bounds(importance, exact, encoder, noise.reshape(-1, K, 2)).reshape(200, -1).mean(1)
        for K in [1, 2, 4, 32, 1024]
    }
    single = evaluate_bounds(sgvb_a, exact, encoder, noise)
    np.testing.assert_allclose(bounds[1], single, rtol=1e-10)
    gaps = [exact.log_likelihood - values.mean() for values in bounds.values()]
    for fewer, more in zip([1, 2, 4, 32], [2, 4, 32, 1024], strict=True):
        # The same draws in larger groups: by Jensen's inequality each difference is positive, not only their average.
        assert (bounds[more] >= bounds[fewer] - 1e-12).all()
    std_error = bounds[1].std() / np.sqrt(200)
    assert gaps[0] > 5 * std_error  # how wide it is depends on the encoder
    assert abs(gaps[0] - (exact.log_likelihood - exact.lower_bound(encoder))) < 5 * std_error
    assert abs(gaps[-1]) < 5 * bounds[1024].std() / np.sqrt(200) + 1e-3
