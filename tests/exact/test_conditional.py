"""A conditional model by `VAE(conditional=True)`, against the closed form of the linear-Gaussian one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.stats import multivariate_normal

from aevb import VAE, tasks
from aevb.fitted.imputation import _complete
from aevb.models import Column, Datapoint, GenerativeModel, RecognitionModel, TableDecoder, standard_normal
from aevb.networks import MLP

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


# ---- imputation ------------------------------------------------------------------------------------------------------

HOLES = np.array([[0.9, np.nan, -1.2], [np.nan, np.nan, 0.4], [np.nan, 1.0, np.nan]])
GIVEN = np.array([[1.5], [-0.5], [0.0]])


def exact_completion(x, y):
    """Return the mean and the standard deviation of the missing entries of one x, given the others and y."""
    missing, mu = np.isnan(x), B @ y + BIAS
    spread = W @ W.T + NOISE**2 * np.eye(3)
    gain = spread[np.ix_(missing, ~missing)] @ np.linalg.inv(spread[np.ix_(~missing, ~missing)])
    rest = spread[np.ix_(missing, missing)] - gain @ spread[np.ix_(~missing, missing)]
    return (mu[missing] + gain @ (x - mu)[~missing]), np.sqrt(np.diag(rest))


class Decoder(eqx.Module):
    """p(x|z, y)."""

    def __call__(self, z, y):
        return dist.Normal(W @ z + B @ y + BIAS, NOISE).to_event(1)


class Encoder(eqx.Module):
    """The exact p(z|x, y)."""

    def __call__(self, x):
        precision = 1 + (W.T @ W).item() / NOISE**2
        return dist.Normal(W.T @ (x.values - B @ x.given - BIAS) / NOISE**2 / precision, precision**-0.5).to_event(1)


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["hmc", "importance", "metropolis-within-gibbs"])
def test_missing_values_are_filled_in_given_the_condition(method):
    """4 chains of 500: standard errors are below 0.03 even if only every fifth draw is new; 5 of them are allowed."""
    models = GenerativeModel(standard_normal(1), Decoder()), RecognitionModel(Encoder())
    rows = Datapoint(HOLES, given=GIVEN)
    found = tasks.impute(*models, rows, jax.random.key(0), method=method, num_samples=500, num_draws=3)
    for row, (x, y) in enumerate(zip(HOLES, GIVEN, strict=True)):
        mean, std = exact_completion(x, y)
        np.testing.assert_allclose(found.mean[row, np.isnan(x)], mean, atol=0.15)
        np.testing.assert_allclose(found.std[row, np.isnan(x)], std, rtol=0.1)
        np.testing.assert_allclose(found.mean[row, ~np.isnan(x)], x[~np.isnan(x)], rtol=1e-6)
    assert found.draws.shape == (3, 3, 3)


@pytest.mark.thorough
def test_missing_entries_of_tables_are_filled_in_given_the_condition():
    """20,000 draws: standard errors are below 0.01, and 5 of them are allowed."""
    network = MLP(2, (), 6)  # from z and y to the means and log variances of three columns
    weight = np.vstack([np.hstack([W, B]), np.zeros((3, 2))])
    bias = np.concatenate([BIAS, np.full(3, 2 * np.log(NOISE))])
    layer = lambda network: (network.layers[0].weight, network.layers[0].bias)  # noqa: E731
    network = eqx.tree_at(layer, network, (jnp.asarray(weight, jnp.float32), jnp.asarray(bias, jnp.float32)))
    decoder = TableDecoder(network, [Column(name, "gaussian", 0.0, 1.0) for name in "abc"])
    keys, rows = jax.random.split(jax.random.key(0), 3), Datapoint(jnp.asarray(HOLES), given=jnp.asarray(GIVEN))
    options = {"num_samples": 20_000, "num_draws": 0, "encodes_missing": True}
    guess, std, _ = _complete((GenerativeModel(standard_normal(1), decoder), None), rows, keys, **options)
    for row, (x, y) in enumerate(zip(HOLES, GIVEN, strict=True)):
        mean, exact_std = exact_completion(x, y)
        np.testing.assert_allclose(guess[row, np.isnan(x)], mean, atol=0.05)
        np.testing.assert_allclose(std[row, np.isnan(x)], exact_std, rtol=0.05)


@pytest.mark.thorough
def test_a_learned_model_fills_in_what_the_condition_implies(fitted):
    x, y, _ = rows(300, 4)
    holes = np.where(np.arange(3) == np.arange(300)[:, None] % 3, np.nan, x)
    found = fitted.impute(holes, y)
    np.testing.assert_array_equal(found[~np.isnan(holes)], x[~np.isnan(holes)])
    exact = np.array([exact_completion(*pair)[0][0] for pair in zip(holes, y[:, None], strict=True)])
    errors = found[np.isnan(holes)] - exact
    assert np.sqrt(np.mean(errors**2)) < 0.1  # 100 draws, of which some depend on each other; seen: 0.04
