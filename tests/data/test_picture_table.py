"""Folders of pictures that are read in pieces; here they are small, but treated as large."""

import numpy as np
import pytest
from PIL import Image

from aevb.data import DataFileError, training_data
from aevb.data.image_folder import PictureOptions, read_images
from aevb.data.picture_table import picture_table
from aevb.data.run_data import DataSettings, prepare
from aevb.data.table import blocks
from aevb.data.tables import open_tables

LEVELS = np.random.default_rng(0).integers(0, 256, (30, 6, 5), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path):
    for number, levels in enumerate(LEVELS):
        place = tmp_path / ("even" if number % 2 == 0 else "odd")
        place.mkdir(exist_ok=True)
        Image.fromarray(levels).save(place / f"{number:02}.png")
    return tmp_path


def rows_of(tables):
    return np.concatenate([rows for _, _, rows in blocks(tables)])


def test_it_has_the_rows_of_the_folder(folder, monkeypatch):
    expected = read_images(folder).rows
    table = picture_table(folder)
    np.testing.assert_array_equal(rows_of([table]), expected)
    np.testing.assert_array_equal(rows_of([table.part(7, 19)]), expected[7:19])
    assert table.image_shape == (6, 5)
    assert open_tables(folder)[0].cuts is not None  # a small folder is loaded
    monkeypatch.setattr(training_data, "IN_MEMORY_BYTES", 100)
    assert open_tables(folder)[0].cuts is None
    data = prepare(DataSettings(str(folder)))
    np.testing.assert_array_equal(data.test, expected[data.learn.left_out])
    assert list(data.test_labels) == ["odd" if number >= 15 else "even" for number in data.learn.left_out]


@pytest.mark.filterwarnings("ignore:.*are resized")
def test_a_picture_that_differs_is_named(folder):
    Image.fromarray(LEVELS[0][:5]).save(folder / "odd" / "99.png")
    with pytest.raises(DataFileError, match=r"99\.png is 5 x 5 pixels, but 00\.png is 5 x 6"):
        rows_of([picture_table(folder)])
    assert rows_of([picture_table(folder, PictureOptions(resize=(6, 5)))]).shape == (31, 30)
    (folder / "odd" / "98.png").write_bytes(b"no picture")
    with pytest.raises(DataFileError, match=r"98\.png cannot be read as a picture"):
        rows_of([picture_table(folder, PictureOptions(resize=(6, 5)))])


def test_with_colours_each_picture_has_three_channels(folder):
    Image.fromarray(np.stack([LEVELS[0], LEVELS[1], LEVELS[2]], axis=-1)).save(folder / "odd" / "31.png")
    assert picture_table(folder, PictureOptions(colour=True)).image_shape == (6, 5, 3)
    rows = rows_of([picture_table(folder, PictureOptions(colour=True))])
    np.testing.assert_array_equal(rows[0].reshape(6, 5, 3), np.repeat(LEVELS[0][..., None], 3, axis=-1))
    np.testing.assert_array_equal(rows[-1].reshape(6, 5, 3)[..., 1], LEVELS[1])
    with pytest.warns(UserWarning, match=r"some pictures, such as 31\.png, are in colour, read as grey levels"):
        rows_of([picture_table(folder)])
