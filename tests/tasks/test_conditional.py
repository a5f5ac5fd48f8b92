"""Imputation, denoising and super-resolution against the conditional Gaussian of a linear model.

The estimates are averages over 2,000 samples of z of each row. Errors are compared in units of the standard deviation
of x given y, which is at least that of E[x|y, z] over z. If the samples are worth 250 independent ones, as is assumed,
an average is off by 6/sqrt(250) = 0.38 with probability 2e-9, and 128 values are looked at: a correct program then
fails for fewer than one seed in a million. Seeds are fixed.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats
from scipy.stats import multivariate_normal

from aevb.models import GenerativeModel, standard_normal
from aevb.tasks import complete, denoise, impute, super_resolve
from aevb.tasks.observations import GaussianNoise, Missing, Pooled, Replaced

pytestmark = pytest.mark.thorough

NUM_SAMPLES = 500  # of each of four chains
TOLERANCE = 0.38
KEY = jax.random.key(0)
POOL = np.zeros((2, 8))  # of images of 2 x 4 pixels, by squares of 2 x 2
POOL[0, [0, 1, 4, 5]] = POOL[1, [2, 3, 6, 7]] = 0.25


def with_gaps(linear):
    is_missing = np.random.default_rng(1).random(linear.x.shape) < 0.5
    is_missing[0] = True  # nothing was observed in this row
    return np.where(is_missing, np.nan, linear.x)


def assert_agrees(linear, found, observations):
    """Compare with the exact result, given (A, noise variance, y) for each row."""
    exact = [linear.given(*observation) for observation in observations]
    mean, std = (np.stack(arrays) for arrays in zip(*exact, strict=True))
    unit = np.maximum(std, 1e-3)
    assert np.abs((found.mean - mean) / unit).max() < TOLERANCE
    # With the same samples, a variance has a relative error sqrt(2) times as large, a standard deviation half of that.
    assert np.abs((found.std - std) / unit).max() < TOLERANCE
    if len(found.draws):
        errors = (found.draws.mean(0) - mean) / unit
        assert np.abs(errors).max() < 6 / np.sqrt(len(found.draws) / 4)
        is_uncertain = std > 0.01
        spread = found.draws.std(0)[is_uncertain] / std[is_uncertain]
        assert np.abs(spread.mean() - 1) < 0.1


@pytest.mark.parametrize("method", ["hmc", pytest.param("metropolis-within-gibbs", marks=pytest.mark.slow)])
def test_imputation_is_the_conditional_gaussian(linear, method):
    y = with_gaps(linear)
    found = impute(linear.generative, linear.recognition, y, KEY, method=method, num_samples=NUM_SAMPLES, num_draws=100)
    seen = ~np.isnan(y)
    assert_agrees(linear, found, [(np.eye(8)[i], 1e-9, row[i]) for row, i in zip(y, seen, strict=True)])
    np.testing.assert_array_equal(found.mean[seen], y[seen])
    np.testing.assert_array_equal(found.std[seen], 0)


@pytest.mark.slow
def test_denoising_is_the_conditional_gaussian(linear):
    y = linear.x + 0.5 * np.random.default_rng(2).normal(size=linear.x.shape)
    found = denoise(linear.generative, linear.recognition, y, KEY, level=0.5, num_samples=NUM_SAMPLES)
    assert_agrees(linear, found, [(np.eye(8), 0.25, row) for row in y])


@pytest.mark.slow
def test_super_resolution_is_the_conditional_gaussian(linear):
    y = linear.x @ POOL.T + 0.3 * np.random.default_rng(3).normal(size=(len(linear.x), 2))
    setting = {"factor": 2, "image_shape": (2, 4), "noise_std": 0.3, "num_samples": NUM_SAMPLES, "num_draws": 100}
    found = super_resolve(linear.generative, linear.recognition, y, KEY, **setting)
    assert_agrees(linear, found, [(POOL, 0.09, row) for row in y])


@pytest.mark.slow
@pytest.mark.parametrize("task", ["impute", "denoise", "super_resolve"])
@pytest.mark.parametrize("method", ["importance", "gibbs", "metropolis-within-gibbs", "hmc without an encoder"])
def test_every_method_is_the_conditional_gaussian(linear, task, method):
    """Gibbs sampling is exact here, because the encoder is the posterior. It needs more samples, because its steps are
    small, and a pool has few good proposals for outlying data: ten times as many samples, twice the tolerance."""
    rng = np.random.default_rng(4)
    recognition = None if method.endswith("encoder") else linear.recognition
    setting = {"method": method.split()[0], "num_samples": 10 * NUM_SAMPLES}
    if task == "impute":
        y = with_gaps(linear)
        found = impute(linear.generative, recognition, y, KEY, **setting)
        observations = [(np.eye(8)[~np.isnan(row)], 1e-9, row[~np.isnan(row)]) for row in y]
    elif task == "denoise":
        y = linear.x + 0.5 * rng.normal(size=linear.x.shape)
        found = denoise(linear.generative, recognition, y, KEY, level=0.5, **setting)
        observations = [(np.eye(8), 0.25, row) for row in y]
    else:
        y = linear.x @ POOL.T + 0.3 * rng.normal(size=(len(linear.x), 2))
        setting |= {"factor": 2, "image_shape": (2, 4), "noise_std": 0.3}
        found = super_resolve(linear.generative, recognition, y, KEY, **setting)
        observations = [(POOL, 0.09, row) for row in y]
    assert_agrees(linear, found, observations)


@jax.jit
def observe(observation, p, y):
    return observation.log_likelihood(p, y), observation.condition(p, y, KEY)


@pytest.mark.parametrize("name", ["missing", "noise", "pooled"])
def test_observations_of_a_gaussian_are_its_conditionals(name):
    """Given z, x is N(mu, S) and y = A x + noise, so that y is N(A mu, A S A' + s²) and x given y has a closed form."""
    mu, std = np.linspace(-1, 1, 8), np.linspace(0.4, 0.9, 8)
    seen = np.array([True, False] * 4)
    x = mu + std * np.random.default_rng(6).normal(size=8)
    A, s, observation, y = {
        "missing": (np.eye(8)[seen], 1e-6, Missing(), np.where(seen, x, np.nan)),
        "noise": (np.eye(8), 0.5, GaussianNoise(jnp.array(0.5)), x + 0.1),
        "pooled": (POOL, 0.3, Pooled(jnp.array(0.3), (2, 4), 2), POOL @ x + 0.1),
    }[name]
    p = dist.Normal(jnp.asarray(mu), jnp.asarray(std), validate_args=False).to_event(1)
    observed = y[~np.isnan(y)]
    covariance = A @ np.diag(std**2) @ A.T + s**2 * np.eye(len(A))
    gain = np.diag(std**2) @ A.T @ np.linalg.inv(covariance)
    log_likelihood = stats.multivariate_normal(A @ mu, covariance).logpdf(observed)
    value, found = observe(observation, p, y)
    assert value == pytest.approx(log_likelihood, rel=1e-4)
    np.testing.assert_allclose(found.mean, mu + gain @ (observed - A @ mu), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.variance, np.diag(np.diag(std**2) - gain @ A @ np.diag(std**2)), atol=1e-5)


def by_enumeration(observation, probability, y):
    """p(y|z) and E[x|y, z] of a pixel that is 1 with this probability, from p(y|x) for x = 0 and 1."""
    weights = np.array([1 - probability, probability]) * observation
    return np.log(weights.sum()), weights[1] / weights.sum()


@pytest.mark.parametrize("y", [0.0, 1.0])
def test_replaced_pixels_of_binary_images(y):
    probability, rate = 0.3, 0.2
    p = dist.BernoulliProbs(jnp.array([probability]), validate_args=False).to_event(1)
    observation = Replaced(jnp.array([0.0, 1.0]), jnp.array([rate / 2, rate / 2]), jnp.array(1 / 255))
    same, other = 1 - rate / 2, rate / 2
    log_likelihood, mean = by_enumeration([other, same] if y else [same, other], probability, y)
    row = np.float32([y])
    value, found = observe(observation, p, row)
    assert value == pytest.approx(log_likelihood, rel=1e-5)
    assert found.mean[0] == pytest.approx(mean, rel=1e-5)
    masked = Replaced(jnp.array([0.0]), jnp.array([rate]), jnp.array(1 / 255))
    log_likelihood, mean = by_enumeration([0, 1 - rate] if y else [1, rate], probability, y)
    value, found = observe(masked, p, row)
    assert value == pytest.approx(log_likelihood, rel=1e-5)
    assert found.mean[0] == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize("y", [-0.4, 0.3, 0.5, 1.7])
def test_gaussian_noise_on_binary_images(y):
    probability, std = 0.3, 0.4
    p = dist.BernoulliProbs(jnp.array([probability]), validate_args=False).to_event(1)
    densities = np.exp(-((y - np.array([0, 1])) ** 2) / (2 * std**2)) / (std * np.sqrt(2 * np.pi))
    log_likelihood, mean = by_enumeration(densities, probability, y)
    value, found = observe(GaussianNoise(jnp.array(std)), p, np.float32([y]))
    assert value == pytest.approx(log_likelihood, rel=1e-5)
    assert found.mean[0] == pytest.approx(mean, rel=1e-5)
    assert found.variance[0] == pytest.approx(mean * (1 - mean), rel=1e-4)


def test_replaced_values_of_a_density_are_recognized():
    p = dist.Normal(jnp.array([0.2, 0.2, 0.2]), 0.1, validate_args=False).to_event(1)
    observation = Replaced(jnp.array([0.0, 1.0]), jnp.array([0.1, 0.1]), jnp.array(1 / 255))
    _, found = observe(observation, p, np.float32([0.25, 1.0, 0.0]))
    np.testing.assert_allclose(found.mean[:2], [0.25, 0.2], atol=1e-5)  # a kept value, and salt
    assert 0 < found.mean[2] < 0.2  # black may be the original value


def test_moments_and_draws_of_an_observation_agree():
    """6 standard errors of 40,000 draws: fails for one seed in 10^7."""
    p = dist.Normal(jnp.array([0.0, 1.0, 2.0, 3.0]), jnp.array([0.5, 1.0, 1.5, 2.0]), validate_args=False).to_event(1)
    cases = [
        (Missing(), jnp.array([0.3, jnp.nan, 1.0, jnp.nan])),
        (GaussianNoise(jnp.array(0.7)), jnp.array([0.3, 2.0, 1.0, 4.0])),
        (Replaced(jnp.array([1.0]), jnp.array([0.5]), jnp.array(0.5)), jnp.array([1.0, 1.0, 1.0, 4.0])),
        (Pooled(jnp.array(0.4), (2, 2), 2), jnp.array([2.5])),
    ]
    for observation, y in cases:
        condition = jax.jit(jax.vmap(observation.condition, (None, None, 0)))
        found = condition(p, y, jax.random.split(KEY, 40_000))
        std = np.sqrt(found.variance[0])
        assert np.all(np.abs(found.draw.mean(0) - found.mean[0]) <= 6 * std / 200 + 1e-6)
        np.testing.assert_allclose(found.draw.std(0), std, rtol=0.04, atol=1e-6)


def full_covariance_decoder(z):
    return dist.MultivariateNormal(jnp.zeros(8), jnp.eye(8))


def test_a_decoder_that_does_not_factorize_is_refused():
    generative = GenerativeModel(standard_normal(2), full_covariance_decoder)
    with pytest.raises(
        ValueError, match=r"decoder: p.x.z. is a MultivariateNormal, whose variables are not independent"
    ):
        complete(generative, None, Missing(), np.full((1, 8), np.nan), KEY, method="importance")


@pytest.mark.thorough
@pytest.mark.parametrize("std", [0.3, 1.2])
def test_the_level_of_noise_is_the_most_likely_one(linear, std):
    """In a linear-Gaussian model p(y) is known; the search ends within two of its steps of 8%."""
    from aevb.tasks.restoration import LEVELS, most_likely_std

    rng, num_rows = np.random.default_rng(5), 64
    x = rng.multivariate_normal(linear.mean, linear.covariance, num_rows)
    y = x + std * rng.normal(size=x.shape)
    log_likelihoods = [
        multivariate_normal(linear.mean, linear.covariance + level**2 * np.eye(8)).logpdf(y).sum() for level in LEVELS
    ]
    best = LEVELS[np.argmax(log_likelihoods)]
    found = most_likely_std(linear.generative, linear.recognition, y, KEY)
    assert abs(np.log(found / best)) < 2.5 * np.log(LEVELS[1] / LEVELS[0])
