"""Arrays of images, (n, height, width) or (n, height, width, channels): how they become flat rows."""

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from aevb.data.binarization import DynamicBinarization
from aevb.data.image_folder import deep_levels
from aevb.errors import shown
from aevb.models import Augmented, Conversion
from aevb.training import Resident, Source

FEW_CHANNELS = 4  # at most, if the axis of the channels is to be recognized
BYTE = 255


def flat_images(estimator: Any, X: Any, *, reset: bool, name: str = "X") -> Any:
    """Return images as flat rows (n, D); anything else unchanged.

    Args:
        estimator: The estimator whose shape of images is set or compared; without the argument `image_shape` it takes
            no images, and they are refused elsewhere.
        X: What the user gave.
        reset: Whether to set it: None if X has no images.
        name: Name of the argument, for messages.

    Raises:
        ValueError: The images differ in size, or in shape from those that the model was fitted to.
    """
    if not hasattr(estimator, "image_shape"):
        return X
    if isinstance(X, DynamicBinarization):
        return X._replace(levels=flat_images(estimator, X.levels, reset=reset, name=name))
    images = _as_images(X, name)
    if images is None:
        if reset:
            estimator._given_shape = None
        return X
    shape = images.shape[1:]
    known = None if reset else (getattr(estimator, "_given_shape", None) or estimator.image_shape)
    if known is not None and _with_channels(shape) != _with_channels(known):
        raise ValueError(
            f"{name} has images of shape {shape}, but the model was fitted to images of shape {tuple(known)}. Give "
            "images of that shape."
        )
    if reset:
        estimator._given_shape = shape
    return _levels(images, name).reshape(len(images), -1)


def are_images(X: Any) -> bool:
    """Whether X is an array with three or four axes, or a list of pictures.

    Example:
        >>> are_images(np.zeros((5, 8, 8))), are_images(np.zeros((5, 64)))
        (True, False)
    """
    return _as_images(X, "X") is not None


def flat_rows(X: Any, name: str) -> Any:
    """Return images as flat rows, whatever their shape, and other data unchanged."""
    images = _as_images(X, name)
    return X if images is None else images.reshape(len(images), -1)


def _as_images(X: Any, name):
    """Return X as an array with three or four axes, if it is one, or a list of pictures; None otherwise."""
    if isinstance(X, list | tuple) and X and all(np.ndim(image) in (2, 3) for image in X[:2]):
        sizes = [np.shape(image) for image in X]
        for number, size in enumerate(sizes):
            if size != sizes[0]:
                raise ValueError(
                    f"{name}: image {number} has shape {size}, but image 0 has {sizes[0]} (images counted from 0). "
                    "Resize all images to one size."
                )
        X = np.stack([np.asarray(image) for image in X])
    shape = getattr(X, "shape", ())
    if len(shape) not in (3, 4) or not hasattr(X, "dtype") or 0 in shape:
        return None
    images = np.asarray(X)
    if images.ndim == 4 and images.shape[1] <= FEW_CHANNELS < images.shape[3]:
        raise ValueError(
            f"{name} has shape {images.shape}, with the channels before height and width. Put them last: "
            f"np.moveaxis({name}, 1, -1)."
        )
    return images


def _levels(images, name):
    """Return images of 16 bits as numbers from 0 to 1, or as bytes if they are bytes in a wider type."""
    if images.dtype.kind not in "iu" or images.dtype.itemsize == 1 or images.min() < 0 or images.max() > 65535:
        return images
    if images.max() > BYTE:
        warnings.warn(f"{name}: images of 16 bits are read as k/65535, from 0 to 1.", UserWarning, stacklevel=4)
        return deep_levels(images)
    return images.astype(np.uint8)


def image_facts(estimator: Any) -> tuple[tuple[int, ...] | None, bool]:
    """Return the shape of the images that an estimator was fitted to, None for other rows; and whether X had it.

    Raises:
        ValueError: The argument `image_shape` does not match the data.
    """
    given, found = getattr(estimator, "image_shape", None), getattr(estimator, "_given_shape", None)
    if given is None:
        return found, found is not None
    given = tuple(int(side) for side in given)
    if found is not None and _with_channels(found) != _with_channels(given):
        raise ValueError(f"image_shape={given}: but X has images of shape {found}. Leave it out.")
    if math.prod(given) != estimator.n_features_in_:
        num_pixels = math.prod(given)
        raise ValueError(
            f"image_shape={shown(given)}: such images have {num_pixels:,} numbers, but the rows of X have "
            f"{estimator.n_features_in_:,}. Give the height, width and channels of these rows."
        )
    return given, found is not None


def augmented(estimator: Any, feed: Any, changes: Any) -> Any:
    """Return a feed whose training steps see images with random changes.

    Args:
        estimator: The estimator, which has read the data.
        feed: The feed.
        changes: One or several of :data:`aevb.models.AUGMENTATIONS`; None for none.

    Raises:
        ValueError: The rows are not images, or not in memory.
    """
    if changes is None or not len(changes):
        return feed
    shape, _ = image_facts(estimator)
    if shape is None or not isinstance(feed, Resident):
        raise ValueError(
            f"augment={shown(changes)}: needs images in memory. Give X of shape (n, height, width), or flat rows and "
            "image_shape=(height, width); or leave it out."
        )
    names = (changes,) if isinstance(changes, str) else tuple(changes)
    conversion = feed.source.conversion
    reader: Any = Augmented(conversion.values, shape, names)
    return replace(feed, source=Source(feed.source.rows, Conversion(reader, conversion.given)))


def _with_channels(shape):
    height, width, *channels = shape
    return height, width, *(channels or (1,))
