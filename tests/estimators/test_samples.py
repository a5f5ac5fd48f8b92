import jax
import numpy as np
import pytest

from aevb.estimators import sgvb_b
from aevb.estimators.kl import has_analytic_kl
from aevb.estimators.samples import average
from aevb.models import standard_models
from aevb.networks import initialize


@pytest.mark.parametrize("num_samples", [1, 2, 5])
def test_an_average_is_over_the_samples_only(num_samples):
    z = np.random.default_rng(0).normal(size=(num_samples, 3)).astype(np.float32)
    values, norm = average(lambda z: (2 * z, (z * z).sum()), z)
    np.testing.assert_allclose(values, 2 * z.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(norm, (z * z).sum(axis=1).mean(), rtol=1e-6)


def test_the_error_for_batched_noise_gives_the_expected_shape():
    models = initialize(standard_models(4, 2, (3,), "bernoulli"), jax.random.key(0))
    with pytest.raises(ValueError, match=r"epsilon has shape \(5, 1, 2\); .* have shape \('L', 2\)"):
        jax.eval_shape(
            lambda epsilon: sgvb_b(*models, np.zeros(4, np.float32), epsilon), np.zeros((5, 1, 2), np.float32)
        )


@pytest.mark.parametrize(("posterior", "expected"), [("gaussian", True), ("full-gaussian", True), ("laplace", False)])
def test_which_models_have_a_divergence_in_closed_form(posterior, expected):
    models = standard_models(4, 2, (3,), "bernoulli", posterior=posterior)
    assert has_analytic_kl(*models, data_dim=4) is expected
