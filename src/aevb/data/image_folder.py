"""Read a folder of pictures as rows of grey levels or colours; warn about conversions, and refuse what has none."""

import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aevb.errors import DataFileError

ENDINGS = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm"}
# How a picture was converted, in words that follow "n of its N pictures are" or "is".
_COLOUR = "in colour, read as grey levels (luma, 0.299 R + 0.587 G + 0.114 B); colour=True keeps the colours"
_GREY = "grey, read as colours like the others"
_TRANSPARENT = "partly transparent, placed on white"
_FRAMES = "animated or of several pages; only the first frame or page is read"
DEEP = "16-bit, read as numbers from 0 to 1 (k/65535)"


class PictureOptions(NamedTuple):
    """How pictures are read."""

    colour: bool = False  # whether colours are kept; otherwise they become grey levels
    resize: tuple[int, int] | None = None  # height and width of all pictures; None to refuse pictures of several sizes
    skip_broken: bool = False  # whether files that cannot be read are left out instead of refused


AS_THEY_ARE = PictureOptions()


class ImageRows(NamedTuple):
    """Pictures of one size."""

    rows: np.ndarray  # (N, D), flat: bytes; numbers from 0 to 1 for 16 bits; other numbers unchanged
    image_shape: tuple[int, ...]
    labels: np.ndarray | None  # the names of their folders, if there are several


def image_files(folder: Path) -> list[Path]:
    """Return the pictures in a folder and its subfolders, sorted by name; hidden files are ignored."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)
    return [path for path in files if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def read_images(folder: Path, options: PictureOptions = AS_THEY_ARE) -> ImageRows:
    """Read all pictures in a folder; a warning says how many were converted, and from what.

    Args:
        folder: The folder.
        options: How they are read.

    Raises:
        DataFileError: A picture cannot be read without loss, or differs in size or kind from the first one; the
            message names it.
    """
    try:
        import PIL.Image  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{folder}: reading pictures needs Pillow: pip install pillow") from error

    files = image_files(folder)
    if not files:
        raise DataFileError(f"{folder} has no pictures. Give a folder with files {', '.join(sorted(ENDINGS))}.")
    levels, conversions, read, broken = [], Counter(), [], []
    for path in files:
        try:
            picture, done = read_picture(path, options)
        except BrokenPictureError as error:
            if not options.skip_broken:
                raise DataFileError(f"{error} To leave out such files: --skip-broken.") from error
            broken.append(path.relative_to(folder).as_posix())
            continue
        conversions.update(done)
        check_like(path, picture, *((read[0], levels[0]) if read else (path, picture)))
        read.append(path)
        levels.append(picture)
    if not read:
        raise DataFileError(f"{folder}: none of its {len(files):,} pictures can be read, such as {broken[0]}.")
    levels = _in_colour(levels, conversions) if options.colour else levels
    for what, count in conversions.items():
        warnings.warn(f"{folder}: {_counted(count, len(read))} {what}.", stacklevel=2)
    if broken:
        names = ", ".join(broken[:5]) + ", ..." * (len(broken) > 5)
        warnings.warn(f"{folder}: {len(broken):,} of {len(files):,} pictures cannot be read: {names}.", stacklevel=2)
    return ImageRows(np.stack(levels).reshape(len(read), -1), levels[0].shape, folder_names(folder, read))


def folder_names(folder: Path, files: list[Path]) -> np.ndarray | None:
    """Return the name of each picture's folder, if there are several."""
    folders = [path.relative_to(folder).parent.as_posix() for path in files]
    return np.array([folder.name if name == "." else name for name in folders]) if len(set(folders)) > 1 else None


def check_like(path: Path, picture: np.ndarray, first: Path, model: np.ndarray) -> None:
    """Refuse a picture that differs in size or depth from the first one, `model`."""
    if picture.shape[:2] != model.shape[:2]:
        size, other = (f"{array.shape[1]} x {array.shape[0]}" for array in (picture, model))
        raise DataFileError(
            f"{path} is {size} pixels, but {first.name} is {other}. Resize all pictures to one size, or have them "
            f"resized: --resize {model.shape[0]} {model.shape[1]} (height and width)."
        )
    if picture.dtype != model.dtype:
        kinds = " and ".join(_KINDS[array.dtype.name] for array in (picture, model))
        raise DataFileError(f"{path} and {first.name} differ: {kinds}. Save all pictures in one format.")


def _in_colour(levels, conversions):
    """Return all pictures with three channels if one of them has."""
    are_grey = [picture.ndim == 2 for picture in levels]
    if all(are_grey):
        return levels
    if any(are_grey):
        conversions[_GREY] += sum(are_grey)
    return [np.repeat(picture[..., None], 3, axis=-1) if picture.ndim == 2 else picture for picture in levels]


def _counted(count, total):
    """Return the subject and verb of a sentence about some of the pictures.

    Example:
        >>> [_counted(1, 1), _counted(1, 2), _counted(3, 3)]
        ['its only picture is', '1 of its 2 pictures is', 'all 3 pictures are']
    """
    if total == 1:
        return "its only picture is"
    few = f"all {count:,} pictures" if count == total else f"{count:,} of its {total:,} pictures"
    return f"{few} {'is' if count == 1 else 'are'}"


_KINDS = {"uint8": "8 bits", "float32": "16 bits or floating point", "float64": "32-bit whole numbers"}


class BrokenPictureError(DataFileError):
    """A file cannot be read as a picture."""


def read_picture(path: Path, options: PictureOptions) -> tuple[np.ndarray, list[str]]:
    """Return a picture's levels, (height, width) or (height, width, 3), and how it was converted."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as picture:
                _check_depth(path, picture)
                done = [_FRAMES] if getattr(picture, "n_frames", 1) > 1 else []
                levels, more = _levels(picture, options.colour)
                levels, resized = _resized(levels, options.resize)
                return levels, done + more + resized
    except DataFileError:
        raise
    except (OSError, ValueError, SyntaxError, EOFError, Warning, Image.DecompressionBombError) as error:
        message = f"{path} cannot be read as a picture: {error}. Remove it, or write it again."
        raise BrokenPictureError(message) from error


def _resized(levels, size):
    """Return levels of a picture of this height and width, averaged over the pixels that they come from."""
    from PIL import Image

    if size is None or levels.shape[:2] == tuple(size):
        return levels, []
    height, width = size
    single = levels if levels.dtype == np.uint8 else levels.astype(np.float32)
    picture = Image.fromarray(single).resize((width, height), Image.Resampling.LANCZOS)
    return np.asarray(picture).astype(levels.dtype), [f"resized to {height} x {width} pixels (height x width)"]


def _check_depth(path, picture):
    """Refuse 16-bit PNGs that are not grey: Pillow would silently reduce them to 8 bits per channel."""
    if picture.format == "PNG":
        with open(path, "rb") as file:
            header = file.read(26)
        depth, colour_type = header[24], header[25]  # in IHDR, which comes first
        if depth == 16 and colour_type != 0:
            raise DataFileError(
                f"{path} has 16 bits per channel in colour or with transparency, and 8 of them would be lost. Save it "
                "as 16-bit grey, or with 8 bits per channel."
            )


def deep_levels(levels: np.ndarray) -> np.ndarray:
    """Return 16-bit grey levels, whole numbers from 0 to 65535, as float32 from 0 to 1."""
    return levels.astype(np.float32) / np.float32(65535)


def _levels(picture: Any, colour: bool) -> tuple[np.ndarray, list[str]]:
    if picture.mode.startswith("I;16"):
        return deep_levels(np.asarray(picture)), [DEEP]
    if picture.mode == "I":  # 16-bit PGM, scaled by Pillow to 65535 levels, and PNG in older versions of Pillow
        if picture.format in ("PNG", "PPM"):
            return deep_levels(np.asarray(picture)), [DEEP]
        return np.asarray(picture).astype(np.float64), []
    if picture.mode == "F":
        return np.asarray(picture), []
    if picture.mode in ("1", "L"):
        return np.asarray(picture.convert("L")), []
    colours, done = picture.convert("RGBA"), []
    if colours.getextrema()[3][0] < 255:
        from PIL import Image

        colours = Image.alpha_composite(Image.new("RGBA", colours.size, "white"), colours)
        done.append(_TRANSPARENT)
    red, green, blue, _ = np.moveaxis(np.asarray(colours), -1, 0)
    if np.array_equal(red, green) and np.array_equal(green, blue):  # grey, in three channels
        return np.ascontiguousarray(red), done
    if colour:
        return np.stack([red, green, blue], axis=-1), done
    return np.asarray(colours.convert("L")), [*done, _COLOUR]
