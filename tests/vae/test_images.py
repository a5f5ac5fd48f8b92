"""Models of images: shapes in and out, labels, files, and what is refused."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import aevb
from aevb import VAE

IMAGES = (load_digits().images[:300] / 16).astype(np.float32)  # (300, 8, 8)
ROWS = IMAGES.reshape(300, -1)
FAST = {"latent_dim": 2, "max_epochs": 1, "optimizer": "sgd", "likelihood": "bernoulli", "progress": False}


@pytest.fixture(scope="module")
def conv():
    return VAE(network="conv", hidden=(8,), **FAST).fit(IMAGES)


@pytest.mark.thorough
def test_images_come_back_as_images(conv):
    assert conv.reconstruct(IMAGES[:3]).shape == conv.sample(3).shape == (3, 8, 8)
    assert conv.inverse_transform(np.zeros((2, 2))).shape == (2, 8, 8)
    np.testing.assert_array_equal(conv.transform(ROWS), conv.transform(IMAGES))  # flat rows are read too
    np.testing.assert_array_equal(conv.transform(IMAGES[..., None]), conv.transform(IMAGES))


@pytest.mark.thorough
def test_flat_rows_with_their_shape_are_the_same_model_and_stay_flat(conv):
    flat = VAE(network="conv", hidden=(8,), image_shape=(8, 8), **FAST).fit(ROWS)
    np.testing.assert_array_equal(flat.transform(ROWS), conv.transform(IMAGES))
    assert flat.sample(3).shape == (3, 64)


@pytest.mark.thorough
def test_a_model_of_images_is_saved_and_loaded(conv, tmp_path):
    loaded = aevb.load(conv.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.sample(3), conv.sample(3))
    np.testing.assert_array_equal(loaded.transform(IMAGES), conv.transform(IMAGES))


@pytest.mark.thorough
def test_images_are_conditioned_on_labels():
    labels = load_digits().target[:300]
    vae = VAE(network="resnet", hidden=(8,), conditional=True, **FAST).fit(IMAGES, labels)
    assert vae.sample(3, y=5).shape == (3, 8, 8)
    assert np.isfinite(vae.score(IMAGES, labels))


@pytest.mark.slow
def test_convolutions_learn_digits_better_than_the_average_pixel():
    vae = VAE(network="conv", latent_dim=5, likelihood="bernoulli", max_epochs=20, progress=False).fit(IMAGES)
    p = np.clip(ROWS.mean(axis=0), 1e-6, 1 - 1e-6)
    independent = np.mean(np.sum(ROWS * np.log(p) + (1 - ROWS) * np.log(1 - p), axis=1))
    assert vae.score(IMAGES) > independent + 2


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (ROWS, {"network": "conv"}, r"network='conv': needs images, but X has rows of 64 numbers\. Give X of shape"),
        (
            ROWS,
            {"image_shape": (8, 9)},
            r"image_shape=\(8, 9\): such images have 72 numbers, but the rows of X have 64",
        ),
        (ROWS, {"image_shape": (64,)}, r"image_shape=\(64,\): give \(height, width\)"),
        (IMAGES, {"image_shape": (4, 16)}, r"image_shape=\(4, 16\): but X has images of shape \(8, 8\)"),
        ([IMAGES[0], IMAGES[1, :5]], {}, r"image 1 has shape \(5, 8\), but image 0 has \(8, 8\)"),
        (np.zeros((9, 3, 8, 8)), {}, r"channels before height and width. Put them last: np\.moveaxis\(X, 1, -1\)"),
        (IMAGES, {"network": "conv", "hidden": (4, 4, 4, 4)}, r"4 levels halve images of 8 x 8 pixels"),
    ],
)
def test_images_that_do_not_fit_are_refused(X, options, message):
    with pytest.raises(ValueError, match=message):
        VAE(**options, **FAST).fit(X)


@pytest.mark.thorough
def test_new_images_of_another_shape_are_refused(conv):
    with pytest.raises(
        ValueError, match=r"images of shape \(4, 4\), but the model was fitted to images of shape \(8, 8\)"
    ):
        conv.transform(np.zeros((2, 4, 4)))


@pytest.mark.thorough
def test_images_of_16_bits_are_not_taken_for_bytes():
    deep = (IMAGES * 65535).astype(np.uint16)
    with pytest.warns(UserWarning, match="images of 16 bits are read as k/65535"):
        vae = VAE(**FAST).fit(deep)
    with pytest.warns(UserWarning, match="images of 16 bits"):
        codes = vae.transform(deep)
    np.testing.assert_allclose(codes, vae.transform(deep / 65535), atol=1e-5)
    bytes_in_16_bits = (IMAGES * 255).astype(np.uint16)
    assert VAE(**FAST).fit(bytes_in_16_bits).scale_ == pytest.approx(1 / 255)
