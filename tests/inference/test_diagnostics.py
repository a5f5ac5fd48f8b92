"""Diagnostics on linear-Gaussian models, where the best Gaussian of each kind is known."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from aevb.inference.diagnostics import active_codes, active_units, gap, posterior_collapse
from aevb.models import GenerativeModel, RecognitionModel, standard_normal

KEY = jax.random.key(0)


class PartlyDead(eqx.Module):
    """z_0 depends on x, z_1 equals the prior, z_2 has a constant mean and variance that differ from the prior."""

    def __call__(self, x):
        one = jnp.ones(())
        return dist.Normal(jnp.stack([x[0], 0 * one, 0.5 * one]), jnp.stack([0.5 * one, one, one])).to_event(1)


def test_dead_dimensions_are_named():
    x = np.random.default_rng(0).normal(size=(1000, 2))
    recognition = RecognitionModel(PartlyDead())
    units = active_units(recognition, x)
    assert units.is_active.tolist() == [True, False, False]
    np.testing.assert_allclose(units.variance, [x[:, 0].var(), 0, 0], rtol=1e-4)
    report = posterior_collapse(GenerativeModel(standard_normal(3), PartlyDead()), recognition, x)
    first = (0.25 + np.mean(x[:, 0] ** 2) - 1 - np.log(0.25)) / 2
    np.testing.assert_allclose(report.divergence, [first, 0, 0.125], rtol=1e-3, atol=1e-6)
    assert report.dead == (1, 2)  # a constant mean carries no information, whatever its KL divergence
    assert str(report) == "2 of 3 latent dimensions carry no information: 1, 2"


def test_active_is_relative_to_the_variance_of_the_prior():
    """Components of a Dirichlet with 20 parts have a prior variance of 0.0023: a variance of 0.001 is large."""
    codes = np.random.default_rng(0).dirichlet(np.full(20, 2.0), size=500)
    assert active_codes(codes).num_active == 0
    assert active_codes(codes, dist.Dirichlet(np.ones(20))).num_active == 20
    unknown = dist.TransformedDistribution(dist.Normal(0, 1), dist.transforms.SigmoidTransform())
    np.testing.assert_array_equal(active_codes(codes, unknown).variance, active_codes(codes).variance)


def test_correlated_dimensions_are_rejected(linear_gaussian):
    exact = linear_gaussian(2, num_data=4)
    with pytest.raises(ValueError, match="q\\(z\\|x\\) are not independent: it is a MultivariateNormal"):
        posterior_collapse(exact.generative, exact.recognition, exact.x)


@pytest.mark.slow
def test_the_gap_is_split_as_in_the_closed_form(linear_gaussian):
    """The best diagonal Gaussian has the posterior's mean and diagonal precisions: KL = (sum log P_jj - log det P) / 2.

    Compared with it, an encoder with the same means and variances s times as large loses J (s - 1 - log s) / 2.
    """
    exact = linear_gaussian(2, num_data=16)
    covariance = np.asarray(exact.recognition.encoder.scale_tril, np.float64)
    precision = np.linalg.inv(covariance @ covariance.T)
    approximation = (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1]) / 2
    spread = 2.0 / (np.diag(np.linalg.inv(precision)) * np.diag(precision))
    encoder = exact.diagonal(spread=jnp.asarray(spread))
    result = gap(exact.generative, encoder, exact.x, KEY, num_steps=300)
    assert approximation > 0.05
    np.testing.assert_allclose(result.approximation.mean(), approximation, atol=0.02)
    np.testing.assert_allclose(result.amortization.mean(), 2 - 1 - np.log(2), atol=0.05)
    np.testing.assert_allclose(
        result.lower_bound + result.amortization + result.approximation, result.log_likelihood.values, rtol=1e-6
    )
    errors = result.approximation - approximation
    assert np.abs(errors / result.approximation_std_errors).max() < 5
