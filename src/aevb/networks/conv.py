"""Convolutional networks of images, as encoders and as decoders that mirror them.

Paper: §7.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from aevb.networks.convolution import Convolution, GroupNorm, folded, unfolded
from aevb.networks.mlp import ACTIVATIONS, Linear

SMALL_SIDE = 8  # pixels: images are halved until their smaller side is at most this
FIRST_WIDTH, MAX_WIDTH = 32, 256  # channels at half the resolution; each level has twice those of the one before
NUM_BLOCKS = 1  # residual blocks per level of a "resnet"


class Residual(eqx.Module):
    r"""A residual block with the activations before the convolutions (He et al., "Identity mappings", 2016).

    .. math:: y = x + C_2 f(N_2 C_1 f(N_1 x))

    Args:
        num_channels: Channels of x and y.
    """

    norms: tuple[GroupNorm, GroupNorm]
    convolutions: tuple[Convolution, Convolution]

    def __init__(self, num_channels: int):
        self.norms = GroupNorm(num_channels), GroupNorm(num_channels)
        self.convolutions = Convolution(num_channels, num_channels), Convolution(num_channels, num_channels)

    def __call__(self, x: Array, activation: Any) -> Array:
        """Return y, for images x of shape (..., height, width, num_channels)."""
        y = x
        for norm, convolution in zip(self.norms, self.convolutions, strict=True):
            y = convolution(activation(norm(y)))
        return x + y


class Level(eqx.Module):
    """One resolution of a network: a convolution, normalization, and residual blocks, if it has any.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        num_blocks: Number of residual blocks, after the convolution of an encoder and before that of a decoder.
        num_normalized: Channels that are normalized: those of the encoder's output or of the decoder's input.
    """

    convolution: Convolution
    norm: GroupNorm
    blocks: tuple[Residual, ...]

    def __init__(self, in_channels: int, out_channels: int, num_blocks: int, num_normalized: int):
        self.convolution, self.norm = Convolution(in_channels, out_channels), GroupNorm(num_normalized)
        self.blocks = tuple(Residual(num_normalized) for _ in range(num_blocks))


class ConvNet(eqx.Module):
    r"""A network that reads images, or that returns them, as flat rows.

    Each level of an encoder joins squares of 2 x 2 pixels to one pixel with four times the channels and convolves: a
    convolution of 6 x 6 pixels with stride 2. A decoder has the same levels in reverse: it convolves, and spreads the
    channels of each pixel over a square. Each pixel is covered equally often, so that there are no checkerboards. A
    linear layer connects the smallest images with the other side.

    Args:
        in_size: Width of the input. An encoder reads a flat image, followed by any other numbers.
        hidden: Channels of the levels, in the order in which the network computes them.
        out_size: Width of the output; a multiple of the number of pixels for a decoder, whose outputs are whole images
            one after the other.
        activation: A key of ``ACTIVATIONS``.
        image_shape: (height, width) or (height, width, channels).
        side: ``"input"`` for an encoder, ``"output"`` for a decoder.
        num_blocks: Residual blocks per level.

    Example:
        >>> encoder = ConvNet(784, (32, 64), 10, image_shape=(28, 28), side="input")
        >>> decoder = ConvNet(5, (64, 32), 2 * 784, image_shape=(28, 28), side="output")
        >>> encoder(jnp.zeros(784)).shape, decoder(jnp.zeros((3, 5))).shape
        ((10,), (3, 1568))
    """

    levels: tuple[Level, ...]
    linear: Linear
    activation: str = eqx.field(static=True)
    image_shape: tuple[int, ...] = eqx.field(static=True)
    side: str = eqx.field(static=True)
    in_size: int = eqx.field(static=True)
    out_size: int = eqx.field(static=True)

    def __init__(
        self,
        in_size: int,
        hidden: Sequence[int],
        out_size: int,
        activation: str = "gelu",
        *,
        image_shape: Sequence[int],
        side: str,
        num_blocks: int = 0,
    ):
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation: got {activation!r}, expected one of {tuple(ACTIVATIONS)}.")
        height, width, channels = _with_channels(image_shape)
        self.activation, self.image_shape, self.side = activation, (height, width, channels), side
        self.in_size, self.out_size = in_size, out_size
        rows, columns = sizes_of((height, width), len(hidden))[-1]
        num_pixels = height * width * channels
        if side == "input":
            if in_size < num_pixels:
                raise ValueError(f"in_size={in_size}: images of shape {tuple(image_shape)} have {num_pixels} numbers.")
            inputs = channels, *hidden[:-1]
            self.levels = tuple(Level(4 * c, o, num_blocks, o) for c, o in zip(inputs, hidden, strict=True))
            self.linear = Linear(rows * columns * hidden[-1] + in_size - num_pixels, out_size)
        else:
            if out_size % num_pixels:
                raise ValueError(f"out_size={out_size}: not a multiple of {num_pixels}, the numbers of an image.")
            outputs = *hidden[1:], out_size // (height * width)
            self.levels = tuple(Level(c, 4 * o, num_blocks, c) for c, o in zip(hidden, outputs, strict=True))
            self.linear = Linear(in_size, rows * columns * hidden[0])

    def resized(self, in_size: int, out_size: int) -> "ConvNet":
        """Return a network of the same form with other sizes, all parameters zero."""
        norms = [level.norm.gain.shape[-1] for level in self.levels]
        shape = {"image_shape": self.image_shape, "side": self.side, "num_blocks": len(self.levels[0].blocks)}
        return ConvNet(in_size, norms, out_size, self.activation, **shape)

    def __call__(self, *parts: Array) -> Array:
        """Return the outputs, (..., out_size), for x of shape (..., in_size), or for its parts.

        If the first part of an encoder's input is the image, the others are not joined to it: under `vmap` over one of
        these, such as a label, the convolutions are computed once.
        """
        size = sum(part.shape[-1] for part in parts)
        if size != self.in_size:
            shapes = " and ".join(str(part.shape) for part in parts)
            raise ValueError(f"x has shape {shapes}, but this network expects {self.in_size} values.")
        return self._encode(*parts) if self.side == "input" else self._decode(*parts)

    def _encode(self, *parts):
        height, width, channels = self.image_shape
        num_pixels = height * width * channels
        x, *others = parts if parts[0].shape[-1] == num_pixels else (jnp.concatenate(parts, axis=-1),)
        if x.shape[-1] > num_pixels:
            x, *others = x[..., :num_pixels], x[..., num_pixels:]
        f, batch = ACTIVATIONS[self.activation], x.shape[:-1]
        h = x.reshape(*batch, height, width, channels)
        for level in self.levels:
            h = level.convolution(folded(h))
            for block in level.blocks:
                h = block(h, f)
            h = f(level.norm(h))
        return self.linear(h.reshape(*batch, -1), *others)

    def _decode(self, *parts):
        f, batch = ACTIVATIONS[self.activation], jnp.broadcast_shapes(*(part.shape[:-1] for part in parts))
        height, width, channels = self.image_shape
        *larger, (rows, columns) = sizes_of((height, width), len(self.levels))
        h = self.linear(*parts).reshape(*batch, rows, columns, -1)
        for level, size in zip(self.levels, reversed(larger), strict=True):
            for block in level.blocks:
                h = block(h, f)
            h = unfolded(level.convolution(f(level.norm(h))), *size)
        # One image after the other: (..., height, width, images, channels) -> (..., images, height, width, channels).
        h = jnp.moveaxis(h.reshape(*batch, height, width, -1, channels), -2, -4)
        return h.reshape(*batch, self.out_size)


def _with_channels(image_shape):
    height, width, *channels = map(int, image_shape)
    return height, width, *(channels or (1,))


def sizes_of(size: tuple[int, int], num_levels: int) -> list[tuple[int, int]]:
    """Return the sizes of images that are halved this many times, the given one first.

    Raises:
        ValueError: They are too small for that.

    Example:
        >>> sizes_of((28, 20), 3)
        [(28, 20), (14, 10), (7, 5), (4, 3)]
    """
    sizes = [size]
    for _ in range(num_levels):
        height, width = sizes[-1]
        if min(height, width) < 2:
            raise ValueError(
                f"hidden: {num_levels} levels halve images of {size[0]} x {size[1]} pixels {num_levels} times, but "
                f"after {len(sizes) - 1} they are {height} x {width}. Give at most {len(sizes) - 1} widths."
            )
        sizes.append(((height + 1) // 2, (width + 1) // 2))
    return sizes


def default_widths(image_shape: Sequence[int]) -> tuple[int, ...]:
    """Return the channels of a decoder's levels: images are halved until the smaller side is at most 8 pixels.

    Example:
        >>> default_widths((28, 28)), default_widths((64, 64, 3)), default_widths((8, 8))
        ((64, 32), (128, 64, 32), (32,))
    """
    height, width, _ = _with_channels(image_shape)
    if min(height, width) < 2:
        raise ValueError(
            f"image_shape={tuple(image_shape)}: images for convolutions have at least 2 x 2 pixels. Use network='mlp'."
        )
    widths = [FIRST_WIDTH]
    while min(sizes_of((height, width), len(widths))[-1]) > SMALL_SIDE:
        widths.append(min(2 * widths[-1], MAX_WIDTH))
    return tuple(reversed(widths))
