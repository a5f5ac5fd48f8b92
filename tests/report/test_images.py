from dataclasses import replace

import jax
import numpy as np
import pytest
from matplotlib.image import imread
from scipy.stats import norm

from aevb import VAE
from aevb.data import load_dataset
from aevb.report import images, manifold, manifold_grid, reconstructions, samples
from aevb.report.canvas import tile

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits")


@pytest.fixture(scope="module")
def vae(digits):
    return VAE(latent_dim=2, hidden=(20,), max_epochs=2, optimizer="sgd", progress=False).fit(digits.rows[:300])


@pytest.fixture
def shown(monkeypatch):
    """The arrays that are drawn."""
    sheets = []
    show = images.show
    monkeypatch.setattr(images, "show", lambda axes, sheet, *rest: (sheets.append(sheet), show(axes, sheet, *rest)))
    return sheets


def apart(rows):
    """Images of 8 x 8 with an empty line of pixels at the right and below."""
    return np.pad(rows.reshape(-1, 8, 8), ((0, 0), (0, 1), (0, 1)), constant_values=np.nan)


def test_grid_is_linear_on_the_unit_square_through_the_inverse_cdf():
    grid = manifold_grid(20).reshape(20, 20, 2)
    unit = (np.arange(20) + 0.5) / 20
    np.testing.assert_allclose(norm.cdf(grid[..., 0]), np.broadcast_to(unit, (20, 20)), atol=1e-6)
    np.testing.assert_allclose(norm.cdf(grid[..., 1]), np.broadcast_to(unit[::-1, None], (20, 20)), atol=1e-6)


def test_manifold_shows_decoder_means_with_z1_to_the_right_and_z2_upwards(vae, tmp_path, shown):
    path = manifold(vae, tmp_path / "manifold.png", (8, 8), size=5)
    (sheet,) = shown
    decode = jax.jit(lambda z: vae.generative_.decoder(z).mean)
    for row, column in [(0, 0), (0, 4), (4, 0), (1, 3)]:
        z = norm.ppf([(column + 0.5) / 5, 1 - (row + 0.5) / 5])
        expected = decode(z.astype(np.float32))
        shown_tile = sheet[8 * row : 8 * row + 8, 8 * column : 8 * column + 8]
        np.testing.assert_allclose(shown_tile, np.reshape(expected, (8, 8)), atol=1e-5)
    assert imread(path).ndim == 3
    assert {file.name for file in tmp_path.iterdir()} == {"manifold.png", "manifold.svg"}


def test_manifold_needs_a_plane(vae, tmp_path, monkeypatch):
    monkeypatch.setattr(vae, "model_", replace(vae.model_, latent_dim=3))
    with pytest.raises(ValueError, match="latent_dim=2, but this one has 3"):
        manifold(vae, tmp_path / "manifold.png", (8, 8))
    assert not list(tmp_path.iterdir())


def test_reconstructions_are_below_their_originals(vae, digits, tmp_path, shown):
    rows = digits.rows[300:305]
    reconstructions(vae, tmp_path / "r.png", rows, (8, 8), columns=3)
    made = vae.reconstruct(rows)
    expected = [rows[:3], made[:3], rows[3:], made[3:]]
    assert len(shown) == 4
    for sheet, values in zip(shown, expected, strict=True):
        np.testing.assert_allclose(sheet, tile(apart(values), len(values)), atol=1e-6)


def test_bytes_are_drawn_as_grey_levels(digits, tmp_path, shown):
    grey = (digits.rows[:100] * 255).astype(np.uint8)
    vae = VAE(latent_dim=2, hidden=(20,), max_epochs=1, optimizer="sgd", progress=False).fit(grey)
    reconstructions(vae, tmp_path / "r.png", grey[:2], (8, 8))
    np.testing.assert_allclose(shown[0], tile(apart(grey[:2] / 255), 2), atol=1e-6)


def test_samples_of_grey_levels_show_means(vae, tmp_path, shown):
    samples(vae, tmp_path / "s.png", (8, 8), size=3, seed=1)
    expected = vae.sample(18, mean=True, random_state=1).reshape(-1, 8, 8)  # draws of grey levels would be noise
    np.testing.assert_allclose(shown, [tile(expected[:9], 3), tile(expected[9:], 3)])


def test_samples_of_binary_data_show_draws(digits, tmp_path, shown):
    binary = (digits.rows[:100] > 0.5).astype(np.float32)
    vae = VAE(latent_dim=2, hidden=(20,), max_epochs=1, optimizer="sgd", progress=False).fit(binary)
    samples(vae, tmp_path / "s.png", (8, 8), size=3, seed=1)
    assert set(np.unique(shown[1])) == {0.0, 1.0}


def test_tile_leaves_the_rest_of_the_last_row_empty():
    sheet = tile(np.ones((3, 2, 2)), columns=2)
    assert np.isnan(sheet[2:, 2:]).all()
    assert np.nansum(sheet) == 12
