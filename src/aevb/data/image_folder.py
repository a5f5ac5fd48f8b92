"""A folder of pictures as rows of grey levels."""

import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from aevb.data.tables import DataFileError

ENDINGS = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm"}


class ImageRows(NamedTuple):
    """Pictures of one size."""

    rows: np.ndarray  # (N, height * width), bytes
    image_shape: tuple[int, int]
    labels: np.ndarray | None  # the names of their folders, if they lie in several


def image_files(folder: Path) -> list[Path]:
    """Return the pictures in a folder and the folders in it, in the order of their names."""
    files = sorted(path for pattern in ("*", "*/*") for path in folder.glob(pattern))
    return [path for path in files if path.suffix.lower() in ENDINGS and not path.name.startswith(".")]


def read_images(folder: Path) -> ImageRows:
    """Read all pictures of a folder as grey levels.

    Raises:
        DataFileError: Naming the first file that cannot be read or has another size.
    """
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{folder}: reading pictures needs Pillow: pip install 'aevb[demo]'") from error

    files, rows, shape = image_files(folder), [], None
    for path in files:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                with Image.open(path) as picture:
                    shape = shape or picture.size
                    if picture.size == shape:
                        rows.append(np.asarray(picture.convert("L")).ravel())
                    size = picture.size
        except (OSError, ValueError, SyntaxError, EOFError, Warning, Image.DecompressionBombError) as error:
            raise DataFileError(
                f"{path} cannot be read as a picture: {error}. Remove it, or write it again."
            ) from error
        if size != shape:
            raise DataFileError(
                f"{path} is {size[0]} x {size[1]} pixels, {files[0].name} is {shape[0]} x {shape[1]}. "
                "Bring all pictures to one size."
            )
    if not rows or shape is None:
        raise DataFileError(f"{folder} has no pictures. Give a folder with files {', '.join(sorted(ENDINGS))}.")
    folders = [path.parent.name for path in files]
    labels = np.array(folders) if len(set(folders)) > 1 else None
    return ImageRows(np.stack(rows), (shape[1], shape[0]), labels)
