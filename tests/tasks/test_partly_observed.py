"""Rows with missing values, against a linear-Gaussian model, where everything given the observed values is closed form.

Seeds are fixed. Averages over 400 samples of z that are worth 100 independent ones are off by 0.6 posterior standard
deviations with probability 2e-9; 32 are looked at.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from aevb import VAE
from aevb.estimators import sgvb_b
from aevb.models import GenerativeModel, RecognitionModel
from aevb.tasks import by_completeness, given_observed, impute, latent_means, observed_bound_terms
from aevb.tasks.observations import Missing
from aevb.tasks.observed_models import observed_models

KEY = jax.random.key(0)


def with_holes(linear):
    """Eight rows: nothing is observed in the first, everything in the last."""
    y = np.where(np.random.default_rng(1).random((8, 8)) < 0.4, np.nan, linear.x[:8])
    y[0], y[-1] = np.nan, linear.x[7]
    return y


def exact_posterior(linear, row):
    """Mean and covariance of z given the observed values of one row, and their log density."""
    seen = ~np.isnan(row)
    W, std = np.asarray(linear.generative.decoder.weight)[seen], np.asarray(linear.generative.decoder.std)[seen]
    covariance = np.linalg.inv(np.eye(2) + (W.T / std**2) @ W)
    mean = covariance @ (W.T / std**2) @ (row[seen] - linear.mean[seen])
    if not seen.any():
        return mean, covariance, 0.0
    marginal = stats.multivariate_normal(linear.mean[seen], linear.covariance[np.ix_(seen, seen)])
    return mean, covariance, marginal.logpdf(row[seen])


def test_codes_are_posterior_means_given_the_observed_values(linear):
    y = with_holes(linear)
    found = latent_means(linear.generative, linear.recognition, Missing(), y, KEY, num_samples=100)
    for z, row in zip(found, y, strict=True):
        mean, covariance, _ = exact_posterior(linear, row)
        assert np.abs((z - mean) / np.sqrt(np.diag(covariance))).max() < 0.6


@pytest.mark.parametrize("family", ["gaussian", pytest.param("full-gaussian", marks=pytest.mark.thorough)])
def test_the_bound_given_the_observed_values(linear, family):
    """The true posterior is in the family of full Gaussians, and the bound then log p(observed values) itself. The gap
    of independent Gaussians is known, the KL divergence of two Gaussians. 2,000 draws have standard errors below 0.03.
    """
    y = with_holes(linear)
    models = given_observed(linear.generative, linear.recognition, (family, 2), sgvb_b)
    found = observed_bound_terms(models, y, KEY, sgvb_b, 2000)
    for bound, row in zip(found.lower_bound, y, strict=True):
        _, covariance, log_density = exact_posterior(linear, row)
        variances = 1 / np.diag(np.linalg.inv(covariance))  # those of the best independent Gaussian
        gap = (np.linalg.slogdet(covariance)[1] - np.log(variances).sum()) / 2 if family == "gaussian" else 0.0
        assert bound == pytest.approx(log_density - gap, abs=0.15)


def test_a_user_defined_encoder_sees_a_guess(linear):
    y = with_holes(linear)
    _, recognition = given_observed(linear.generative, linear.recognition, None, sgvb_b)
    guessed = jax.jit(jax.vmap(lambda y: recognition(y).mean))(jnp.asarray(y, jnp.float32))
    np.testing.assert_allclose(guessed[-1], linear.recognition(jnp.asarray(linear.x[7])).mean, rtol=1e-4)  # no holes
    assert np.isfinite(guessed).all()


def test_results_are_in_row_order():
    X = np.array([[1.0], [np.nan], [2.0], [np.nan], [3.0]])
    found = by_completeness(X, lambda X: X[:, 0], lambda X: np.arange(10.0, 10 + len(X)))
    np.testing.assert_array_equal(found, [1, 10, 2, 11, 3])


@pytest.fixture(scope="module")
def vae():
    X = np.random.default_rng(0).normal(size=(60, 5)) @ np.diag([1, 2, 3, 4, 5.0]) + 7
    return VAE(2, hidden=(), max_epochs=2, batch_size=20, optimizer="sgd", validation_fraction=0, progress=False).fit(X)


def rows(vae):
    X = np.random.default_rng(3).normal(size=(6, 5)) * [1, 2, 3, 4, 5] + 7
    holes = X.copy()
    holes[[1, 3], [2, 4]] = np.nan
    holes[3, 0] = np.nan
    return X, holes, [0, 2, 4, 5]


@pytest.mark.thorough
def test_results_of_complete_rows_are_unchanged(vae):
    X, holes, complete = rows(vae)
    np.testing.assert_array_equal(vae.transform(holes)[complete], vae.transform(X)[complete])
    np.testing.assert_array_equal(vae.score_samples(holes)[complete], vae.score_samples(X)[complete])
    assert np.isfinite(vae.transform(holes)).all()


@pytest.mark.thorough
def test_every_method_agrees_with_quadrature(vae):
    """Quadrature is exact to 1e-3. Six standard errors of 2,000 samples are allowed, and the bound is below."""
    _, holes, _ = rows(vae)
    exact = vae.log_likelihood(holes, method="quadrature")
    found = vae.log_likelihood(holes, num_samples=2000)
    assert (np.abs(found.values - exact.values) < 6 * found.std_errors + 1e-2).all()
    assert (vae.score_samples(holes, num_samples=500) < exact.values + 0.2).all()
    ranking = vae.rank_anomalies(holes, method="quadrature")
    np.testing.assert_array_equal(ranking.order, np.argsort(exact.values))
    # log p(x_o) is log p(x) without the columns that are missing: the same model with fewer columns.
    assert exact.values[1] > vae.log_likelihood(rows(vae)[0][1:2], method="quadrature").values[0]


@pytest.mark.thorough
def test_the_posterior_of_rows_with_holes(vae):
    _, holes, complete = rows(vae)
    q = vae.posterior(holes)
    assert q.batch_shape == (6,)
    np.testing.assert_allclose(np.asarray(q.mean)[complete], vae.transform(holes)[complete], rtol=1e-5)
    nothing = vae.posterior(np.full((1, 5), np.nan))
    np.testing.assert_allclose(nothing.mean, 0, atol=0.1)  # the prior
    np.testing.assert_allclose(nothing.variance, 1, atol=0.1)
    np.testing.assert_allclose(vae.reconstruct(holes), vae.inverse_transform(vae.transform(holes)), rtol=1e-5)


def test_infinity_is_still_refused(vae):
    for method in (vae.transform, vae.score_samples, vae.log_likelihood, vae.rank_anomalies):
        with pytest.raises(ValueError, match=r"row 0, column 1 is inf.*: infinity is not allowed here"):
            method(np.array([[np.nan, np.inf, 1, 1, 1]]))


@pytest.mark.thorough
def test_rows_without_observed_values_are_counted(vae):
    X, _, _ = rows(vae)
    nothing = np.array([X[0], np.full(5, np.nan), np.full(5, np.nan)])
    with pytest.warns(UserWarning, match=r"2 of 3 rows have no observed value, and 0 nats"):
        ranking = vae.rank_anomalies(nothing)
    assert not np.signbit(ranking.scores[1:]).any()
    np.testing.assert_array_equal(ranking.scores[1:], 0)
    with pytest.warns(UserWarning, match="1 of 1 rows has no observed value"):
        vae.log_likelihood(nothing[1:2], num_samples=10)


def test_rows_without_holes_are_not_sampled(linear, monkeypatch):
    from aevb.tasks import conditional

    seen = []
    monkeypatch.setattr(
        conditional, "_complete", lambda models, y, keys, **_: seen.append(len(y)) or (y, y, y[:, None])
    )
    y = with_holes(linear)
    found = impute(linear.generative, linear.recognition, np.concatenate([np.tile(linear.x, (40, 1)), y]), KEY)
    assert seen == [8]  # the seven rows with holes, in one batch
    np.testing.assert_array_equal(found.mean[:640], np.tile(linear.x, (40, 1)))
    np.testing.assert_array_equal(found.std[:640], 0)


def test_progress_is_reported_per_batch(linear, monkeypatch):
    from aevb.tasks import conditional

    monkeypatch.setattr(conditional, "_complete", lambda models, y, keys, **_: (y, y, y[:, None]))
    shares = []
    impute(linear.generative, None, np.full((160, 8), np.nan), KEY, progress=shares.append)
    np.testing.assert_allclose(shares, [0.4, 0.8, 1.0])


@pytest.mark.thorough
def test_full_variational_bayes_conditions_on_its_mixture(linear):
    """The average over draws of the weights is a mixture; Bayes' rule for it is written out here."""
    from aevb.models import BayesianGenerativeModel
    from aevb.tasks.observed_models import condition

    bayesian = BayesianGenerativeModel(linear.generative, num_draws=3)
    z, row = jnp.array([0.3, -0.2]), jnp.asarray(with_holes(linear)[2], jnp.float32)
    observed, _ = observed_models((bayesian, None), Missing())
    parts = [
        jax.tree.map(lambda leaf, s=s: leaf[s], (p.base_dist.loc, p.base_dist.scale))
        for p in [bayesian.decoder(z).component_distribution]
        for s in range(3)
    ]
    seen = ~np.isnan(row)
    log_densities = np.array([stats.norm(*part).logpdf(row)[seen].sum() for part in parts])
    expected = np.logaddexp.reduce(log_densities) - np.log(3)
    assert jax.jit(lambda row, z: observed.log_likelihood(row, z))(row, z) == pytest.approx(expected, rel=1e-4)
    weights = np.exp(log_densities - np.logaddexp.reduce(log_densities))
    found = jax.jit(lambda z, row: condition(Missing(), bayesian.decoder(z), row, KEY))(z, row)
    means = np.stack([loc for loc, _ in parts])
    np.testing.assert_allclose(found.mean, np.where(seen, row, weights @ means), rtol=1e-4)
    variances = np.stack([np.broadcast_to(scale, 8) ** 2 for _, scale in parts])
    spread = weights @ (variances + (means - weights @ means) ** 2)
    np.testing.assert_allclose(found.variance, np.where(seen, 0, spread), rtol=1e-3, atol=1e-6)
    assert found.draw.shape == (8,)


@pytest.mark.thorough
def test_models_of_full_variational_bayes_impute():
    X = np.random.default_rng(0).normal(size=(40, 3))
    setting = {"hidden": (), "max_epochs": 1, "optimizer": "sgd", "progress": False, "learner": "full-vb"}
    model = VAE(1, likelihood="gaussian", **setting).fit(X)
    holes = X[:4].copy()
    holes[:, 1] = np.nan
    filled = model.impute(holes, method="importance")
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[:, [0, 2]], X[:4, [0, 2]])


def test_generative_models_given_holes_are_models_like_any_other(linear):
    observed, guess = observed_models((linear.generative, linear.recognition), Missing())
    assert isinstance(observed, GenerativeModel)
    assert isinstance(guess, RecognitionModel)
