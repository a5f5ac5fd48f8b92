"""Random shifts and flips that only training sees."""

import jax
import numpy as np
import pytest

from aevb import VAE
from aevb.models import Augmented, Numbers

pytestmark = pytest.mark.thorough
IMAGES = np.random.default_rng(0).random((20, 14, 28, 2)).astype(np.float32)


def test_shifts_move_an_image_by_up_to_a_fourteenth_of_its_sides():
    rows = IMAGES.reshape(20, -1)
    found = np.asarray(Augmented(Numbers(), (14, 28, 2), ["shift"]).draw(rows, jax.random.key(0), None))
    padded = np.pad(IMAGES, ((0, 0), (1, 1), (2, 2), (0, 0)), mode="edge")
    places = set()
    for number, image in enumerate(found.reshape(IMAGES.shape)):
        matches = [(i, j) for i, j in np.ndindex(3, 5) if np.array_equal(padded[number, i : i + 14, j : j + 28], image)]
        assert len(matches) == 1
        places |= set(matches)
    assert len(places) > 5


def test_only_training_sees_changed_images():
    reader = Augmented(Numbers(), (14, 28, 2), ["shift", "flip"])
    rows = IMAGES.reshape(20, -1)
    np.testing.assert_array_equal(reader(rows, np)[0], rows)
    assert not np.array_equal(reader.draw(rows, jax.random.key(0), None), rows)


def test_a_model_learns_from_changed_images():
    options = {"latent_dim": 2, "hidden": (5,), "max_epochs": 1, "likelihood": "bernoulli", "progress": False}
    images = IMAGES[..., 0]
    with_changes, without = (VAE(augment=augment, **options).fit(images) for augment in (("shift", "flip"), None))
    assert with_changes.score(images) != without.score(images)
    with pytest.raises(ValueError, match="augment='flip': needs images in memory"):
        VAE(augment="flip", **options).fit(images.reshape(20, -1))
    with pytest.raises(ValueError, match="augment='turn'"):
        VAE(augment="turn", **options).fit(images)
