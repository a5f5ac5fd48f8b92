"""Full VB of a linear-Gaussian model whose weights have a Gaussian prior: the bound has a closed form.

p(W) = N(0, I), p(z) = N(0, I), p(x|z, W) = N(Wz, std^2 I); q(W) and q(z|x) are Gaussians with diagonal covariance.

Averages of `NUM_DRAWS` independent values are compared within 5 standard errors: each comparison fails by chance once
in 1.7 million seeds.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from jax import Array
from jax.flatten_util import ravel_pytree
from scipy import stats
from scipy.special import logsumexp

from aevb.estimators import sgvb_a, sgvb_b
from aevb.learners.full_vb import FullVB
from aevb.models import (
    BayesianGenerativeModel,
    GenerativeModel,
    RecognitionModel,
    join,
    split,
    standard_models,
    standard_normal,
)
from aevb.networks import initialize

pytestmark = pytest.mark.float64

STD, NUM_DATA, NUM_DRAWS = 0.7, 10, 20_000


class LinearDecoder(eqx.Module):
    weight: Array

    def __call__(self, z):
        return dist.Normal(self.weight @ z, STD, validate_args=False).to_event(1)


class LinearEncoder(eqx.Module):
    weight: Array
    log_std: Array

    def __call__(self, x):
        return dist.Normal(self.weight @ x, jnp.exp(self.log_std), validate_args=False).to_event(1)


def make(data_dim, latent_dim):
    """Models with random parameters, and two datapoints."""
    rng = np.random.default_rng(0)
    weights = BayesianGenerativeModel(
        GenerativeModel(
            standard_normal(latent_dim), LinearDecoder(jax.device_put(rng.normal(size=(data_dim, latent_dim))))
        )
    )
    log_variance = jax.tree.map(lambda v: jax.device_put(rng.normal(-1, 0.3, size=v.shape)), weights.log_variance)
    weights = eqx.tree_at(lambda model: model.log_variance, weights, log_variance)
    encoder = LinearEncoder(
        jax.device_put(rng.normal(size=(latent_dim, data_dim)) / 2),
        jax.device_put(rng.normal(-1, 0.3, size=latent_dim)),
    )
    return (weights, RecognitionModel(encoder)), jax.device_put(rng.normal(size=(2, data_dim)))


def exact_bound(models, batch):
    """Eq. (14) with eq. (16) inserted, where the sum over datapoints is N/M times the sum over the batch."""
    weights, recognition = models
    mu, variance = np.asarray(weights.mean.decoder.weight), np.exp(weights.log_variance.decoder.weight)
    kl_weights = np.sum(mu**2 + variance - 1 - np.log(variance)) / 2
    total = 0.0
    for x in np.asarray(batch):
        m = np.asarray(recognition.encoder.weight) @ x
        s2 = np.exp(2 * np.asarray(recognition.encoder.log_std))
        residual = np.sum((x - mu @ m) ** 2) + np.sum(mu**2 * s2 + variance * (m**2 + s2))
        total += -len(x) / 2 * np.log(2 * np.pi * STD**2) - residual / (2 * STD**2)
        total -= np.sum(m**2 + s2 - 1 - np.log(s2)) / 2
    return NUM_DATA / len(batch) * total - kl_weights


def draw_bounds(estimator, models, batch, num_samples=1, num_draws=NUM_DRAWS):
    learner, noise = (
        make_learner(estimator, models, num_samples),
        draw_noise(estimator, models, batch, num_samples, num_draws),
    )
    state = learner.init(models, 0.0, jax.random.key(0))
    step = jax.jit(jax.vmap(lambda noise: learner.step(state, batch, noise, jnp.arange(2))[1].lower_bound))
    return NUM_DATA * np.asarray(step(noise))


def make_learner(estimator, models, num_samples):
    return FullVB(split(models).skeleton, NUM_DATA, estimator, num_samples)


def draw_noise(estimator, models, batch, num_samples, num_draws):
    learner = make_learner(estimator, models, num_samples)
    state = learner.init(models, 0.0, jax.random.key(0))
    return jax.jit(lambda key: learner.draw_noise(state, key, batch[0], (num_draws, len(batch))))(jax.random.key(1))


@pytest.mark.parametrize("size", [pytest.param((1, 1), marks=pytest.mark.slow), (4, 2)])
def test_the_expectation_of_both_estimators_is_the_bound(size):
    models, batch = make(*size)
    expected = exact_bound(models, batch)
    a, b = (draw_bounds(estimator, models, batch) for estimator in (sgvb_a, sgvb_b))
    for values in (a, b):
        assert abs(values.mean() - expected) < 5 * values.std() / np.sqrt(len(values))
    several = draw_bounds(sgvb_b, models, batch, num_samples=4)
    assert abs(several.mean() - expected) < 5 * several.std() / np.sqrt(len(several))
    assert 3.4 < b.var() / several.var() < 4.6  # L draws of the weights: the variance is divided by L


def test_the_bound_is_below_the_evidence():
    """With one column and one latent variable log p(X) is an integral over one weight."""
    models, batch = make(1, 1)
    w = np.linspace(-8, 8, 20_001)
    variance = w[:, None] ** 2 + STD**2  # of x given w, (20001, 1)
    x = np.repeat(np.asarray(batch)[:, 0], NUM_DATA // 2)  # by eq. (8) the two rows represent ten
    log_p = -np.sum(x**2 / variance + np.log(2 * np.pi * variance), axis=1) / 2 - w**2 / 2 - np.log(2 * np.pi) / 2
    log_evidence = logsumexp(log_p) + np.log(w[1] - w[0])
    assert exact_bound(models, batch) < log_evidence


def bound_of_parameters(estimator, models, batch, num_samples=1):
    """The bound as a function of one vector of parameters and the noise."""
    learner = make_learner(estimator, models, num_samples)
    vector, unravel = ravel_pytree(split(models).parameters)
    state = learner.init(models, 0.0, jax.random.key(0))

    def bound(vector, noise):
        return learner.step(state._replace(parameters=unravel(vector)), batch, noise, jnp.arange(2))[1].lower_bound

    return bound, vector


@pytest.mark.parametrize("estimator", [sgvb_a, sgvb_b])
def test_gradients_agree_with_finite_differences(estimator, gradient_and_differences):
    models, batch = make(4, 2)
    bound, vector = bound_of_parameters(estimator, models, batch, num_samples=2)
    noise = jax.tree.map(lambda array: array[0], draw_noise(estimator, models, batch, 2, 1))
    gradient, differences = gradient_and_differences(bound, vector, noise)
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-7 * np.abs(gradient).max())
    assert (gradient != 0).all()


def make_bernoulli():
    """A small auto-encoder away from the symmetric start, with weight std of about 0.14, and two datapoints."""
    parts = split(standard_models(4, 2, (3,), "bernoulli"))
    parameters = jax.tree.map(lambda p: 5 * p, initialize(parts.parameters, jax.random.key(0), "paper"))
    generative, recognition = join(parameters, *parts[1:])
    weights = BayesianGenerativeModel(generative)
    log_variance = jax.tree.map(lambda v: jnp.full_like(v, -4.0), weights.log_variance)
    weights = eqx.tree_at(lambda model: model.log_variance, weights, log_variance)
    return (weights, recognition), jax.device_put(np.random.default_rng(0).uniform(size=(2, 4)))


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "least"), [(lambda: make(4, 2), 1.05), (make_bernoulli, 10)])
def test_b_has_the_gradient_of_a_with_less_variance(setting, least):
    """Measured: 1.14 times less in the linear model, near whose posterior A has little noise too; 16.5 in the other."""
    models, batch = setting()
    gradients = {}
    for estimator in (sgvb_a, sgvb_b):
        bound, vector = bound_of_parameters(estimator, models, batch)
        noise = draw_noise(estimator, models, batch, 1, 5000)
        gradients[estimator] = np.asarray(jax.jit(jax.vmap(jax.grad(bound), (None, 0)))(vector, noise))
    difference = gradients[sgvb_a] - gradients[sgvb_b]  # at the same noise
    assert (np.abs(difference.mean(0)) <= 5 * difference.std(0) / np.sqrt(len(difference)) + 1e-12).all()
    assert gradients[sgvb_a].var(0).sum() > least * gradients[sgvb_b].var(0).sum()


def test_predictions_average_over_the_weights():
    """p(x|z) is a mixture of Gaussians, one per draw: close to N(mu z, std^2 + variance z^2) with many draws."""
    (weights, _), _ = make(1, 1)
    many = BayesianGenerativeModel(weights.mean, num_draws=20_000)
    many = eqx.tree_at(lambda model: model.log_variance, many, weights.log_variance)
    mu, variance = float(weights.mean.decoder.weight[0, 0]), float(np.exp(weights.log_variance.decoder.weight[0, 0]))
    z, x = jnp.array([1.5]), jnp.array([0.3])
    exact = stats.norm(mu * 1.5, np.sqrt(STD**2 + variance * 1.5**2))

    @jax.jit
    def predict(model):
        p = model.decoder(z)
        return p.mean[0], p.log_prob(x), model.log_likelihood(x, z), model.log_joint(x, z)

    mean, log_prob, log_likelihood, log_joint = predict(many)
    np.testing.assert_allclose(mean, exact.mean(), atol=0.03)
    np.testing.assert_allclose(log_likelihood, exact.logpdf(0.3), atol=0.02)
    np.testing.assert_allclose(log_prob, log_likelihood, rtol=1e-10)
    np.testing.assert_allclose(log_joint - stats.norm.logpdf(1.5), log_likelihood, rtol=1e-10)


@pytest.mark.slow
def test_a_learned_prior_is_averaged_together_with_the_decoder():
    """Draws of the weights that make z likely have more weight in p(x|z): the joint is the average over the draws."""

    class Prior(eqx.Module):
        loc: Array

        def __call__(self):
            return dist.Normal(self.loc, 1.0, validate_args=False).to_event(1)

    weights = BayesianGenerativeModel(
        GenerativeModel(Prior(jnp.zeros(1)), LinearDecoder(jnp.ones((2, 1)))), num_draws=7
    )
    log_variance = jax.tree.map(jnp.zeros_like, weights.log_variance)
    weights = eqx.tree_at(lambda model: model.log_variance, weights, log_variance)
    x, z = jnp.array([1.0, -0.5]), jnp.array([2.0])
    draws = [weights.transform(weights.noise(key)) for key in jax.random.split(jax.random.key(0), 7)]
    expected = logsumexp([model.log_joint(x, z) for model in draws]) - np.log(7)
    np.testing.assert_allclose(weights.log_joint(x, z), expected, rtol=1e-10)
    np.testing.assert_allclose(weights.decoder(z).log_prob(x), weights.log_likelihood(x, z), rtol=1e-10)
    assert weights.sample(jax.random.key(0)).shape == (2,)
