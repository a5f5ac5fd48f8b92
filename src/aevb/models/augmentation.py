"""Random changes of images that a training step sees: shifts and flips."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax

AUGMENTATIONS = ("shift", "flip")
SHARE = 1 / 14  # of the sides: the largest shift, two pixels of 28


class Augmented(eqx.Module):
    """Stored images, which training sees shifted or flipped at random, anew at each visit.

    All else sees them as they are. Pixels beyond an edge are those of the edge.

    Args:
        reader: How the numbers are read, see :class:`aevb.models.Numbers`.
        image_shape: (height, width) or (height, width, channels).
        changes: Some of ``AUGMENTATIONS``.

    Example:
        >>> from aevb.models import Numbers
        >>> reader, images = Augmented(Numbers(), (1, 3), ["flip"]), jnp.array([[1.0, 2, 3]] * 50)
        >>> flipped = reader.draw(images, jax.random.key(0), None)
        >>> sorted(set(map(tuple, flipped.tolist())))
        [(1.0, 2.0, 3.0), (3.0, 2.0, 1.0)]
    """

    reader: Any
    image_shape: tuple[int, ...] = eqx.field(static=True)
    changes: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, reader: Any, image_shape: Sequence[int], changes: Sequence[str]):
        self.reader, self.image_shape, self.changes = reader, tuple(image_shape), tuple(changes)

    @property
    def is_dynamic(self) -> bool:
        """Whether a training step sees draws: always."""
        return True

    def __call__(self, stored: Any, xp: Any = jnp) -> tuple[Any, Any]:
        """Return the numbers, and a mask of the observed ones, as the reader does."""
        return self.reader(stored, xp)

    def draw(self, values: Array, key: Array, stored: Any) -> Array:
        """Return what a training step sees of rows (M, D)."""
        key_values, key_shift, key_flip = jax.random.split(key, 3)
        height, width, *_ = self.image_shape
        x = self.reader.draw(values, key_values, stored)
        images = x.reshape(len(x), height, width, -1)
        if "flip" in self.changes:
            is_flipped = jax.random.bernoulli(key_flip, shape=(len(x), 1, 1, 1))
            images = jnp.where(is_flipped, images[:, :, ::-1], images)
        if "shift" in self.changes:
            most = [max(round(side * SHARE), 1) for side in (height, width)]
            padded = jnp.pad(images, ((0, 0), *((m, m) for m in most), (0, 0)), mode="edge")
            starts = jax.random.randint(key_shift, (len(x), 2), 0, 2 * jnp.array(most) + 1)
            size = images.shape[1:]
            images = jax.vmap(lambda image, at: lax.dynamic_slice(image, (at[0], at[1], 0), size))(padded, starts)
        return images.reshape(x.shape)

    def describe(self) -> dict[str, Any]:
        """Return a description that can be written as JSON."""
        return {"kind": "augmented", "changes": list(self.changes), "of": self.reader.describe()}
