"""Data at extreme scales: training never produces NaN or infinity, or the data are refused with advice on rescaling.

The columns are standardized internally, so that units only shift the density: the bound of c X is that of X minus the
sum of log c.
"""

import warnings
from functools import cache

import numpy as np
import pytest

from aevb import VAE

pytestmark = pytest.mark.thorough

GENERATOR = np.random.default_rng(0)
X = (GENERATOR.normal(size=(400, 2)) @ GENERATOR.normal(size=(2, 6)) + 0.3 * GENERATOR.normal(size=(400, 6))).astype(
    np.float64
)
SMALL = {"latent_dim": 2, "hidden": (4,), "batch_size": 20, "max_epochs": 6, "progress": False}
PIXELS = np.clip(np.rint(60 * X + 120), 0, 255)


def fit(data, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vae = VAE(**{**SMALL, **arguments}).fit(data)
    assert all(np.isfinite(value) for row in vae.history_ for value in row.values())
    for found in (vae.transform(data), vae.score_samples(data), vae.sample(20), vae.reconstruct(data)):
        assert np.isfinite(found).all()
    return vae


@cache
def plain():
    return fit(X)


@pytest.mark.parametrize(
    "scales",
    [
        np.full(6, 1e6),
        np.full(6, 1e-6),
        np.array([1e6, 1e-6, 1.0, 1e4, 1e-4, 1.0]),
        np.array([1e30, 1e-30, 1.0, 1.0, 1.0, 1.0]),
    ],
    ids=["1e6", "1e-6", "mixed", "1e30 and 1e-30"],
)
def test_units_shift_only_the_density(scales):
    vae = fit(X * scales)
    np.testing.assert_allclose(vae.transform(X * scales), plain().transform(X), atol=2e-3)
    np.testing.assert_allclose(vae.sample(20) / scales, plain().sample(20), atol=2e-3)
    expected = [row["lower_bound"] - np.log(scales).sum() for row in plain().history_]
    np.testing.assert_allclose([row["lower_bound"] for row in vae.history_], expected, atol=2e-3)


@pytest.mark.parametrize("offset", [1e3, 1e5])
def test_a_large_offset_loses_only_the_digits_of_float32(offset):
    """Rows are given in float32, which has 7 digits: two decimals of 1e5 + x are left."""
    vae = fit((X + offset).astype(np.float32))
    assert vae.score((X + offset).astype(np.float32)) == pytest.approx(plain().score(X), abs=0.5)


@pytest.mark.parametrize("data", [PIXELS, PIXELS.astype(np.uint8)], ids=["float", "bytes"])
def test_pixels_up_to_255(data):
    vae = fit(data)
    assert vae.likelihood_ == ("sigmoid-gaussian" if data.dtype == np.uint8 else "gaussian")


@pytest.mark.parametrize("value", [0.0, 7.0, 1e6])
def test_a_constant_column_of_real_numbers_is_refused_by_name(value):
    """Its density is unbounded; a constant column of zeros or ones can be learned."""
    data = X.copy()
    data[:, 2] = value
    with pytest.raises(ValueError, match=f"column 2 is constant .every row has {value}.*Drop it with"):
        fit(data)


def test_one_row_repeated_many_times():
    data = np.repeat(PIXELS[:1] / 255, 400, axis=0)
    vae = fit(data, likelihood="bernoulli")
    np.testing.assert_allclose(vae.reconstruct(data[:1]), data[:1], atol=0.5)
    with pytest.raises(ValueError, match="column 0 is constant"):
        fit(data)  # not ink on paper, so the guess is a density


@pytest.mark.parametrize("value", [1e4, 1e8, 1e15])
def test_a_single_outlier(value):
    data = X.copy()
    data[5, 3] = value
    fit(data)


def test_numbers_beyond_float32_are_refused():
    data = X.copy()
    data[5, 3] = 1e300
    with pytest.raises(ValueError, match=r"row 5, column 3.*1e\+300"):
        fit(data)
