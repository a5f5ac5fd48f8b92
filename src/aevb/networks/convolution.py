"""Layers of networks for images: convolution, group normalization, and changes of resolution without overlap."""

from math import gcd

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax

from aevb.arrays import filled

KERNEL = 3  # pixels, per side
NUM_GROUPS = 8  # of channels that are normalized together, or a divisor of it
EPSILON = 1e-5  # added to variances, as usual


class Convolution(eqx.Module):
    r"""A convolution with a 3 x 3 kernel and zeros around the image, which keeps the image's size.

    .. math:: y_{hwo} = b_o + \sum_{i,j=0}^{2} \sum_c W_{ocij}\, x_{h+i-1,\,w+j-1,\,c}

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.

    Example:
        >>> Convolution(3, 8)(jnp.zeros((28, 20, 3))).shape
        (28, 20, 8)
    """

    weight: Array  # (out, in, 3, 3), as `initialize` expects
    bias: Array  # (out,)

    def __init__(self, in_channels: int, out_channels: int):
        self.weight = filled((out_channels, in_channels, KERNEL, KERNEL), 0)
        self.bias = filled(out_channels, 0)

    def __call__(self, x: Array) -> Array:
        """Return y, for images x of shape (..., height, width, in_channels)."""
        # Transposed explicitly: inside of loops XLA on CPU is fast for this order of the axes only.
        kernel = jnp.transpose(self.weight, (2, 3, 1, 0))
        images = x.reshape(-1, *x.shape[-3:])
        orders = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=orders) + self.bias
        return y.reshape(*x.shape[:-1], -1)


class GroupNorm(eqx.Module):
    r"""Group normalization (Wu and He, 2018): each group of channels of an image gets mean 0 and variance 1.

    .. math:: y = (1 + g)\, \frac{x - \mu}{\sqrt{\sigma^2 + 10^{-5}}} + b

    Args:
        num_channels: Channels; they form up to eight groups.
    """

    gain: Array  # (channels,): g, which starts at 0 like all vectors
    bias: Array  # (channels,)

    def __init__(self, num_channels: int):
        self.gain, self.bias = filled(num_channels, 0), filled(num_channels, 0)

    def __call__(self, x: Array) -> Array:
        """Return y, for images x of shape (..., height, width, channels)."""
        # By the channels' moments, and as one factor and one term per channel: fewer passes over the images.
        num_groups = gcd(x.shape[-1], NUM_GROUPS)
        mean = _averaged(jnp.mean(x, axis=(-3, -2), keepdims=True), num_groups)
        square = _averaged(jnp.mean(jnp.square(x), axis=(-3, -2), keepdims=True), num_groups)
        factor = (1 + self.gain) * lax.rsqrt(jnp.maximum(square - jnp.square(mean), 0) + EPSILON)
        return x * factor + (self.bias - mean * factor)


def _averaged(x, num_groups):
    """Return the average of each group of channels, for each of its channels."""
    groups = x.reshape(*x.shape[:-1], num_groups, -1)
    return jnp.broadcast_to(jnp.mean(groups, axis=-1, keepdims=True), groups.shape).reshape(x.shape)


def folded(x: Array) -> Array:
    """Return images with squares of 2 x 2 pixels as one pixel of four times as many channels.

    An odd side gets one more row or column of zeros.

    Args:
        x: (..., height, width, channels).

    Example:
        >>> folded(jnp.zeros((7, 5, 3))).shape
        (4, 3, 12)
    """
    *batch, height, width, channels = x.shape
    no_pad = [(0, 0)] * len(batch)
    x = jnp.pad(x, [*no_pad, (0, height % 2), (0, width % 2), (0, 0)])
    x = x.reshape(*batch, (height + 1) // 2, 2, (width + 1) // 2, 2, channels)
    x = jnp.swapaxes(x, -4, -3)  # (..., height/2, width/2, 2, 2, channels)
    return x.reshape(*x.shape[:-3], 4 * channels)


def unfolded(x: Array, height: int, width: int) -> Array:
    """Return images of which `folded` makes x: the inverse, without what was added to odd sides.

    Args:
        x: (..., height / 2, width / 2, 4 * channels), rounded up.
        height: Of the result.
        width: Of the result.

    Example:
        >>> unfolded(jnp.zeros((4, 3, 12)), 7, 5).shape
        (7, 5, 3)
    """
    *batch, rows, columns, channels = x.shape
    x = jnp.swapaxes(x.reshape(*batch, rows, columns, 2, 2, channels // 4), -4, -3)
    x = x.reshape(*batch, 2 * rows, 2 * columns, channels // 4)
    return x[..., :height, :width, :]
