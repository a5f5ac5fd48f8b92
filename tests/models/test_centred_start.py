"""A model of binary pixels that starts with their means."""

import jax
import numpy as np
import pytest
from sklearn.datasets import load_digits

from aevb.models import assemble
from aevb.models.centred_start import start_centred

X = (load_digits().data[:400] / 16).astype(np.float32)


def models(likelihood="bernoulli"):
    return assemble((64, 2, (10,)), likelihood, "gelu", None, "glorot", jax.random.key(0))


@pytest.mark.parametrize("weights", [None, np.arange(400.0)])
def test_the_output_bias_gives_the_means_and_the_first_layer_reads_deviations(weights):
    (before, encoder), (generative, recognition) = models(), start_centred(models(), X, weights)
    means = (np.average(X, axis=0, weights=weights) * 400 + 0.5) / 401
    found = jax.nn.sigmoid(generative.decoder.network.layers[-1].bias)
    np.testing.assert_allclose(found, means, rtol=1e-4)
    first = recognition.encoder.network.layers[0]
    np.testing.assert_allclose(first(means), np.zeros(10), atol=1e-5)
    x = np.float32(X[0])
    np.testing.assert_allclose(first(x), encoder.encoder.network.layers[0](x - means), atol=1e-5)
    np.testing.assert_array_equal(
        generative.decoder.network.layers[-1].weight, before.decoder.network.layers[-1].weight
    )
