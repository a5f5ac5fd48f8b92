"""Statistical tests have fixed seeds; with other seeds a correct program fails one of them in 10⁶ runs (5 sigma)."""

import jax
import numpy as np
import pytest

from aevb import VAE
from aevb.data import binarize, load_dataset
from aevb.models import Conversion, Numbers
from aevb.training import Source

DIGITS = load_dataset("digits").rows


def test_the_four_binarizations():
    levels = np.array([[0, 51, 127, 128, 255]], np.uint8)
    assert binarize(levels, "grey") is not None
    np.testing.assert_array_equal(binarize(levels, "threshold"), [[0, 0, 0, 1, 1]])
    np.testing.assert_array_equal(binarize(levels / 255, "threshold"), [[0, 0, 0, 1, 1]])
    many = np.repeat(levels, 20_000, axis=0)
    drawn = binarize(many, "static", seed=1)
    np.testing.assert_array_equal(drawn, binarize(many, "static", seed=1))
    assert not np.array_equal(drawn, binarize(many, "static", seed=2))
    np.testing.assert_allclose(drawn.mean(axis=0), levels[0] / 255, atol=5 * 0.5 / np.sqrt(20_000))
    assert set(drawn[:, [0, 4]].ravel()) == {0, 1}
    assert binarize(levels, "dynamic").levels is levels


def test_values_that_are_not_grey_levels_are_refused():
    with pytest.raises(ValueError, match=r"row 0, column 1 is 1.5"):
        binarize(np.array([[0.5, 1.5]]), "static")
    with pytest.raises(ValueError, match=r"binarization='statik' is not known. Did you mean 'static'"):
        binarize(DIGITS, "statik")


def test_dynamic_draws_have_the_right_probabilities_and_are_fresh():
    source = Source(
        np.tile(np.array([[0, 51, 255]], np.uint8), (20_000, 1)), Conversion(Numbers(1 / 255, is_dynamic=True))
    )
    one, other = (np.asarray(source.draw(np.arange(20_000), key)) for key in source.keys(jax.random.key(0), 2))
    np.testing.assert_allclose(one.mean(axis=0), [0, 0.2, 1], atol=5 * 0.4 / np.sqrt(20_000))
    assert not np.array_equal(one, other)
    assert Source(DIGITS).keys(jax.random.key(0), 2) is None


def test_fit_sees_binary_draws_in_training_and_a_fixed_draw_held_out():
    setting = {"latent_dim": 2, "hidden": (10,), "max_epochs": 2, "optimizer": "sgd", "progress": False}
    vae = VAE(**setting).fit(binarize((DIGITS * 255).round().astype(np.uint8), "dynamic"))
    assert (vae.likelihood_, vae.likelihood_reason_, vae.scale_) == ("bernoulli", "binary draws are 0 or 1", 1.0)
    bound = vae.history_[-1]["validation_lower_bound"]
    # Of binary rows, one in ten: 180 rows with a standard deviation of 5 nats.
    assert bound == pytest.approx(vae.score(binarize(DIGITS, "static", seed=5)), abs=5 * 5 / np.sqrt(180))
    with pytest.raises(ValueError, match="'gaussian': binary draws need 'bernoulli'"):
        VAE(**setting, likelihood="gaussian").fit(binarize(DIGITS, "dynamic"))


def test_validation_data_decides_on_convergence():
    setting = {
        "latent_dim": 2,
        "hidden": (10,),
        "max_epochs": 2,
        "optimizer": "sgd",
        "progress": False,
        "random_state": 1,
    }
    vae = VAE(**setting).fit(DIGITS[:1600], validation_data=DIGITS[1600:])
    assert vae.history_[-1]["samples"] == 2 * 1600
    assert vae.history_[-1]["validation_lower_bound"] == pytest.approx(vae.score(DIGITS[1600:]), abs=1.0)
    with pytest.raises(ValueError, match=r"validation_data: the value at row 0, column 0"):
        VAE(**setting).fit(DIGITS[:1600], validation_data=DIGITS[1600:] - 1)
    with pytest.raises(ValueError, match="validation_data can only be given with an array"):
        VAE(**setting).fit(iter([DIGITS]), validation_data=DIGITS)
