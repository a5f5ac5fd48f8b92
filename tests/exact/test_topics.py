"""A topic model with one latent variable: log p(x) by quadrature, and the bound below it."""

import jax
import numpy as np
import pytest
from scipy import integrate, special, stats

from aevb.estimators import sgvb_b
from aevb.inference.marginal_likelihood import log_likelihood
from aevb.models import join, split, standard_models
from aevb.networks import initialize
from aevb.training import Source, lower_bounds

COUNTS = np.array([[3.0, 0, 1, 2], [0, 0, 0, 0], [0, 5, 0, 1]])
MEANS = np.array([2.0, 1.0, 0.5, 1.5])


def models(posterior, latent_dim):
    """Return models with random weights; units are (means, unused)."""
    units = MEANS, np.ones(4)
    parameters, constants, skeleton = split(
        standard_models(4, latent_dim, (3,), "multinomial", units=units, posterior=posterior)
    )
    return join(initialize(parameters, jax.random.key(1)), constants, skeleton)


def log_conditional(generative, x, z):
    """Return log p(x|z) by SciPy, from the decoder's weights."""
    decoder = generative.decoder
    layer = decoder.conditional.network.layers[0]
    background = np.log(MEANS + 0.01 * MEANS.mean())
    logits = background + np.asarray(layer.weight, np.float64) @ (decoder.scale * z) + np.asarray(layer.bias)
    return stats.multinomial.logpmf(x, x.sum(), special.softmax(logits))


@pytest.mark.float64
@pytest.mark.thorough
def test_the_bounds_and_log_p_by_quadrature_agree():
    """The bound is an average of 20,000 draws of z, with an error below 0.01."""
    generative, recognition = models("gaussian", 1)
    key = jax.random.key(0)
    bounds = lower_bounds(generative, recognition, Source(COUNTS), np.arange(3), key, sgvb_b, 20_000)
    found = log_likelihood(generative, recognition, COUNTS, key, "quadrature").values

    def density(z, x):
        return np.exp(log_conditional(generative, x, np.array([z])) + stats.norm.logpdf(z))

    exact = np.array([np.log(integrate.quad(density, -12, 12, args=(x,), epsabs=0)[0]) for x in COUNTS])
    assert exact[1] == pytest.approx(0, abs=1e-9)  # a document without words is certain, given its length
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-8)
    below = exact - bounds
    assert np.all(below > -0.01)
    assert below.max() > 0.05  # the encoder has random weights


@pytest.mark.float64
@pytest.mark.thorough
def test_the_decoder_on_the_simplex_is_a_product_of_experts():
    generative, _ = models("dirichlet", 3)
    z = np.array([0.2, 0.5, 0.3])

    assert generative.decoder.scale > 1
    for x in COUNTS:
        np.testing.assert_allclose(
            generative.log_likelihood(x, z), log_conditional(generative, x, z), rtol=1e-9, atol=1e-12
        )


def test_with_zero_weights_documents_are_average():
    generative, _ = standard_models(4, 2, (3,), "multinomial", units=(MEANS, np.ones(4)))

    p = generative.decoder(np.zeros(2, np.float32))

    np.testing.assert_allclose(p.mean.sum(), MEANS.sum(), rtol=1e-6)
    np.testing.assert_allclose(p.mean, MEANS, rtol=0.02)  # up to the smoothing
