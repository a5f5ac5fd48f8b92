"""The parts of a fit without tuning: start, curvature, steps, weights, chains; units that do not matter.

All seeds are fixed. Where an answer is exact up to Monte Carlo errors, the tolerance is at least five of them.
"""

from unittest import mock

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.distributions import constraints

from aevb import fit_posterior
from aevb.inference.chains import effective_sample_size, r_hat
from aevb.inference.fitted import FittedPosterior
from aevb.inference.pareto import smoothed_weights
from aevb.models import LogJoint, describe
from aevb.posterior.curvature import laplace, polish
from aevb.posterior.density import Density
from aevb.posterior.gaussian import Gaussian, maximize, residual
from aevb.posterior.minibatches import Minibatches
from aevb.posterior.smoothing import Smoothed
from aevb.posterior.start import find_start
from aevb.posterior.weighing import resampled

RNG = np.random.default_rng(0)
COVARIANCE = np.array([[4.0, 1.9], [1.9, 1.0]]) * np.outer([1, 1e-3], [1, 1e-3])
MEAN = np.array([3.0, 5e-3])


def gaussian_density():
    precision = np.linalg.inv(COVARIANCE)
    return Density(LogJoint(lambda v: -(v - MEAN) @ precision @ (v - MEAN) / 2), describe((2,)), None, 1)


def test_points_whose_gradients_overflow_are_no_starts():
    density = mock.Mock(side_effect=lambda x: (np.zeros(len(x)), np.where(np.abs(x) > 100, 1e308, 1.0)), size=1)
    values, gradients = Smoothed(density, np.random.default_rng(0))(np.array([[0.0, 0.0], [500.0, 3.0]]))
    assert values.tolist() == [0.0, -np.inf]
    assert gradients[1].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(gradients[0], [1.0, 1.0])  # of s E[eps] + log s


def test_newton_and_curvature_are_exact_for_a_gaussian():
    mode, factor, value = polish(gaussian_density(), np.array([-50.0, 1.0]))
    np.testing.assert_allclose(mode, MEAN, rtol=1e-6)
    np.testing.assert_allclose(factor @ factor.T, COVARIANCE, rtol=1e-6)
    assert abs(value) < 1e-6


def test_the_residual_of_the_exact_posterior_is_zero_at_every_draw():
    density, rng = gaussian_density(), np.random.default_rng(0)
    at = residual(density, Gaussian(MEAN, laplace(density, MEAN)), rng, 64)
    assert max(np.abs(at.shift).max(), np.abs(at.growth).max(), at.shift_error.max()) < 1e-6
    assert at.is_zero
    off = residual(density, Gaussian(MEAN + np.sqrt(np.diag(COVARIANCE)), np.linalg.cholesky(COVARIANCE)), rng, 64)
    assert not off.is_zero


@pytest.mark.thorough
def test_steps_find_the_best_gaussian_of_a_skewed_density():
    """For log p = -a u - exp(-u) (a log-gamma variable), stationarity of the bound has a closed form.

    E[exp(-u)] = exp(-m + s^2/2) = a from the mean, and s^2 E[exp(-u)] = 1 from the spread: s^2 = 1/a.
    """
    a = 3.0
    density = Density(LogJoint(lambda u: -a * u - jnp.exp(-u)), describe(()), None, 1)
    fit = maximize(density, Gaussian(np.array([2.0]), np.array([0.1])), np.random.default_rng(0), 5000)
    assert fit.converged
    mean, std = 1 / (2 * a) - np.log(a), a**-0.5
    assert abs(fit.q.mean[0] - mean) < 0.05 * std  # the test lets 0.03 pass
    assert abs(fit.q.factor[0] / std - 1) < 0.05


@pytest.mark.thorough
def test_minibatches_are_unbiased_and_quiet_near_the_reference():
    x = RNG.normal(size=200)
    model = LogJoint(
        lambda v: dist.Normal(0, 10).log_prob(v).sum(), lambda v, x: dist.Normal(v[0], jnp.exp(v[1])).log_prob(x)
    )
    density = Density(model, describe((2,)), x, 200)
    reference = np.array([x.mean(), np.log(x.std())])
    batches = Minibatches(density, 20, np.random.default_rng(0), reference)
    point = reference + 0.05
    value, gradient = density(np.repeat(point[None], 32, axis=0))
    found = [batches(np.repeat(point[None], 32, axis=0)) for _ in range(50)]
    gradients = np.array([found_gradient[0] for _, found_gradient in found])
    error = gradients.std(0) / np.sqrt(50)
    assert (np.abs(gradients.mean(0) - gradient[0]) < 5 * error).all()
    assert gradients.std(0).max() < 10  # without the control variate about 50
    np.testing.assert_allclose(np.mean([v[0] for v, _ in found]), value[0], atol=1)


@pytest.mark.thorough
@pytest.mark.parametrize(("most", "expected"), [(10**9, 8), (100, 1)])
def test_large_data_are_computed_in_blocks_that_fit_into_memory(most, expected, monkeypatch):
    monkeypatch.setattr("aevb.posterior.density.LARGE", 100)
    monkeypatch.setattr("aevb.posterior.density.MOST_TEMPORARY", most)
    X, y = RNG.normal(size=(200, 3)), RNG.normal(size=200)
    model = LogJoint(lambda w, d: -((d[1] - d[0] @ w) ** 2).sum() / 2)
    density = Density(model, describe((3,)), (X, y), 1)
    points = RNG.normal(size=(11, 3))
    values, gradients = density(points)
    residuals = y - points @ X.T  # (11, 200)
    np.testing.assert_allclose(values, -(residuals**2).sum(1) / 2)
    np.testing.assert_allclose(gradients, residuals @ X)
    assert density.at_once == expected


def test_smoothed_weights_keep_moderate_ones_and_resampling_follows_them():
    log_weights = np.random.default_rng(0).normal(size=1000)
    weights, k_hat = smoothed_weights(log_weights)
    raw = np.exp(log_weights) / np.exp(log_weights).sum()
    order = np.argsort(raw)
    np.testing.assert_allclose(weights[order[:800]] / raw[order[:800]], weights[order[0]] / raw[order[0]])
    assert (np.diff(weights[order]) >= 0).all()  # the order stays
    assert k_hat < 0.7
    assert abs(k_hat - arviz.psislw(log_weights.copy())[1]) < 0.01
    np.testing.assert_allclose(np.log(weights), arviz.psislw(log_weights.copy())[0], atol=0.02)
    index = resampled(weights, 10_000, np.random.default_rng(0))
    counts = np.bincount(index, minlength=1000)
    assert np.abs(counts - 10_000 * weights).max() <= 1  # evenly spaced: never more than one off


def test_diagnostics_of_chains_agree_with_arviz():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4, 500))
    chains = np.zeros((4, 500))
    for t in range(1, 500):
        chains[:, t] = 0.7 * chains[:, t - 1] + noise[:, t]
    assert abs(float(r_hat(chains)) - float(arviz.rhat(chains))) < 1e-3
    bulk = float(arviz.ess(chains, method="bulk"))
    assert float(effective_sample_size(chains)) <= 1.1 * bulk
    assert abs(float(effective_sample_size(noise)) / float(arviz.ess(noise, method="bulk")) - 1) < 0.1


UNITS = [1e-4, 1e-2, 1.0, 1e2, 1e4]


@pytest.mark.parametrize("unit", [1e-4, pytest.param(1e4, marks=pytest.mark.thorough)])
def test_units_of_predictors_do_not_matter(unit):
    """A regression with flat priors has a known posterior, which rescaling a predictor rescales."""
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(80), rng.normal(3, 1, 80) * unit, rng.normal(size=80) / unit])
    y = x @ (np.array([1.0, 2 / unit, -1 * unit])) + 0.5 * rng.normal(size=80)

    def log_joint(v, data):
        x, y = data
        return dist.Normal(x @ v["beta"], v["sigma"]).log_prob(y).sum() - jnp.log(v["sigma"])

    variables = {"beta": (3,), "sigma": constraints.positive}
    fitted = fit_posterior(log_joint, variables=variables, data=(x, y), progress=False)
    beta, (squares,), *_ = np.linalg.lstsq(x, y, rcond=None)
    covariance = squares / (80 - 3 - 2) * np.linalg.inv(x.T @ x)  # of a multivariate t with 77 degrees of freedom
    std = np.sqrt(np.diag(covariance))
    assert (np.abs(fitted.mean["beta"] - beta) < 0.08 * std).all()  # 4,000 draws: errors of 0.016
    np.testing.assert_allclose(fitted.std["beta"], std, rtol=0.08)
    assert fitted.warnings == ()
    assert fitted.converged_


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_units_do_not_matter_for_minibatches(unit):
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(2000), rng.normal(3, 1, 2000) * unit])
    y = x @ (np.array([1.0, 2 / unit])) + 0.5 * rng.normal(size=2000)
    model = (lambda w: 0.0 * w.sum()), lambda w, d: dist.Normal(d[0] @ w, 0.5).log_prob(d[1])
    fitted = fit_posterior(model, variables=(2,), data=(x, y), batch_size=50, progress=False)
    covariance = 0.25 * np.linalg.inv(x.T @ x)
    std = np.sqrt(np.diag(covariance))
    assert (np.abs(fitted.mean - np.linalg.lstsq(x, y, rcond=None)[0]) < 0.08 * std).all()
    np.testing.assert_allclose(fitted.std, std, rtol=0.08)


def model(x, y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    with numpyro.plate("rows", 40, subsample_size=10) as rows:
        numpyro.sample("y", dist.Normal(mu * x[rows], 0.5), obs=None if y is None else y[rows])


@pytest.mark.thorough
def test_a_numpyro_model_with_minibatches():
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    y = 2 * x + 0.5 * rng.normal(size=40)
    fitted = fit_posterior(model, data={"x": x, "y": y}, progress=False)
    precision = 1 / 100 + (x**2).sum() / 0.25
    mean = (x * y).sum() / 0.25 / precision
    assert abs(fitted.mean["mu"] - mean) < 0.1 * precision**-0.5
    assert abs(fitted.std["mu"] * precision**0.5 - 1) < 0.1
    predicted = fitted.predictive(num_samples=2000)["y"]
    assert predicted.shape == (2000, 40)
    np.testing.assert_allclose(predicted.mean(0), mean * x, atol=0.08)
    value = np.array([mean, mean + 0.1])
    np.testing.assert_allclose(
        fitted.log_prob({"mu": value}), dist.Normal(mean, precision**-0.5).log_prob(value), atol=0.1
    )


def test_priors_as_distributions_a_summary_and_files(tmp_path):
    x = np.random.default_rng(0).normal(1.0, 2.0, size=30)
    priors = {"mu": dist.Normal(0, 10)}
    fitted = fit_posterior((priors, lambda v, x: dist.Normal(v["mu"], 2.0).log_prob(x)), data=x, progress=False)
    precision = 1 / 100 + 30 / 4
    row = fitted.summary()["mu"]
    assert abs(row["mean"] - x.sum() / 4 / precision) < 0.08 * precision**-0.5
    assert abs(row["std"] * precision**0.5 - 1) < 0.08
    assert "mu" in repr(fitted.summary())
    fitted.save(tmp_path / "posterior")
    same = FittedPosterior.load(tmp_path / "posterior")
    assert same.summary().rows == fitted.summary().rows
    assert same.std == fitted.std
    assert repr(same) == repr(fitted)
    np.testing.assert_array_equal(same.sample(9)["mu"], fitted.sample(9)["mu"])
    np.testing.assert_array_equal(same.sample(9, resample=False)["mu"], fitted.sample(9, resample=False)["mu"])
    values = {"mu": np.array([0.5, 1.0])}
    np.testing.assert_array_equal(same.log_prob(values), fitted.log_prob(values))
    np.testing.assert_allclose(
        same.log_prob(values), dist.Normal(x.sum() / 4 / precision, precision**-0.5).log_prob(values["mu"]), atol=0.05
    )
    with pytest.raises(FileNotFoundError, match="contains no fitted posterior"):
        FittedPosterior.load(tmp_path)


@pytest.mark.slow
def test_chains_correct_what_mean_field_misses():
    """Two variables with correlation 0.95: mean field's standard deviation is 0.31 of the truth."""
    density = gaussian_density()
    fitted = fit_posterior(
        density.model.log_prior, "gaussian", variables=(2,), refine="hmc", progress=False, random_state=1
    )
    std = np.sqrt(np.diag(COVARIANCE))
    assert (np.abs(fitted.mean - MEAN) < 0.1 * std).all()
    np.testing.assert_allclose(fitted.std, std, rtol=0.1)
    assert (fitted.r_hat < 1.01).all()
    assert (fitted.effective_sample_size > 1000).all()
    narrow = fitted.sample(4000, resample=False)
    assert (narrow.std(0) < 0.5 * std).all()


def test_the_users_arrays_stay_usable_in_single_precision():
    """JAX confuses NumPy arrays of functions that are traced in two precisions."""
    scales = np.array([1.0, 2.0, 3.0])

    def log_joint(v):
        return dist.Normal(0, scales).log_prob(v).sum()

    assert jax.jit(log_joint)(np.zeros(3, np.float32)).dtype == np.float32
    fitted = fit_posterior(log_joint, variables=(3,), progress=False)
    np.testing.assert_allclose(fitted.std, scales, rtol=0.08)
    assert jax.jit(lambda v: 2 * log_joint(v))(np.ones(3, np.float32)).dtype == np.float32


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:(k-hat|Learning)")
def test_draws_outside_of_the_support_name_the_variable():
    """A Gaussian reaches below 0, where this model's root is NaN."""

    def log_joint(v):
        return dist.Normal(0, 1).log_prob(v["a"]) + 2 * jnp.log(jnp.sqrt(v["b"])) - v["b"]

    with pytest.warns(UserWarning, match=r"not finite at .* of q's draws, because of the variable 'b'"):
        fitted = fit_posterior(log_joint, "gaussian", variables={"a": (), "b": ()}, progress=False)
    assert abs(fitted.mean["b"] - 2) < 0.2  # a gamma variable of shape 2: those draws have no weight


def two_modes(v):
    apart = jnp.stack([dist.Normal(-6, 1).log_prob(v), dist.Normal(6, 1).log_prob(v)])
    return jax.scipy.special.logsumexp(apart, axis=0)


@pytest.mark.thorough
def test_paths_up_the_bound_avoid_the_spike_of_a_hierarchy():
    """Thirty groups far from 0: the density is infinite where the scale is 0; q must not start there.

    With flat priors of the mean and of the scale, the scale is about 20 and known within a factor of 1.3.
    """
    y = np.random.default_rng(0).normal(240, 20, size=(30, 1)) + np.random.default_rng(1).normal(0, 5, size=(30, 4))

    def log_joint(v):
        groups = dist.Normal(v["mu"], v["tau"]).log_prob(v["theta"]).sum()
        return groups + dist.Normal(v["theta"][:, None], v["sigma"]).log_prob(y).sum() - jnp.log(v["sigma"])

    variables = {"mu": (), "tau": constraints.positive, "sigma": constraints.positive, "theta": (30,)}
    density = Density(LogJoint(log_joint), describe(variables), None, 1)
    start = find_start(density, np.random.default_rng(0))
    at = density.constrain(start.q.mean[None])
    assert abs(at["mu"][0] - y.mean()) < 20
    assert abs(np.log(at["tau"][0] / y.mean(1).std())) < 0.5
    assert abs(np.log(at["sigma"][0] / 5)) < 0.5


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:k-hat")
def test_the_end_of_a_ridge_is_not_a_second_mode():
    """The scale of three groups is nearly 0, where paths end; the draws go there, and no mode is missed."""
    y = np.array([1.0, 1.2, 0.8])

    def log_joint(v):
        prior = dist.HalfNormal(1).log_prob(v["tau"]) + dist.Normal(0, v["tau"]).log_prob(v["theta"]).sum()
        return prior + dist.Normal(v["theta"], 1.0).log_prob(y).sum()

    fitted = fit_posterior(log_joint, variables={"tau": constraints.positive, "theta": (3,)}, progress=False)
    assert not any("modes" in warning for warning in fitted.warnings)


@pytest.mark.thorough
def test_modes_that_no_draw_reaches_are_flagged():
    """k-hat of one mode is good; only the other paths know that it is half of the mass."""
    with pytest.warns(UserWarning, match=r"at least 2 modes, with about 50%, 50%"):
        fitted = fit_posterior(two_modes, variables=(), progress=False)
    assert fitted.k_hat < 0.7
    assert abs(abs(float(fitted.mean)) - 6) < 0.2
