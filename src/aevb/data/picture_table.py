"""A folder of pictures that do not fit into memory together, as a table: each is decoded when it is read."""

import warnings
from pathlib import Path

import numpy as np

from aevb.data.image_folder import (
    AS_THEY_ARE,
    PictureOptions,
    check_like,
    folder_names,
    image_files,
    read_picture,
)
from aevb.data.table import Table


def picture_table(folder: Path, options: PictureOptions = AS_THEY_ARE) -> Table:
    """Return the pictures in a folder as a table, of which only the first one is decoded.

    Its size and kind are those of all; with colours, each picture has three channels, whatever it contains. A warning
    names the first picture of each kind of conversion.

    Raises:
        DataFileError: A picture cannot be read, or differs from the first one; also while the table is read.
    """
    files, said = image_files(folder), set()

    def level(path):
        picture, done = read_picture(path, options)
        for what in done:
            if what not in said:
                said.add(what)
                warnings.warn(f"{folder}: some pictures, such as {path.name}, are {what}.", stacklevel=2)
        return np.repeat(picture[..., None], 3, axis=-1) if options.colour and picture.ndim == 2 else picture

    first = level(files[0])

    def row(path):
        picture = level(path)
        check_like(path, picture, files[0], first)
        return picture.reshape(-1)

    def read(start, stop, size):
        for place in range(start, stop, size):
            yield np.stack([row(path) for path in files[place : min(place + size, stop)]])

    return Table(str(folder), len(files), first.size, first.dtype, read, image_shape=first.shape)


def picture_labels(folder: Path) -> np.ndarray | None:
    """Return the names of the pictures' folders, if there are several."""
    return folder_names(folder, image_files(folder))
