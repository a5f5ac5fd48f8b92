"""Convolutions against a direct sum, and networks of images of any size."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aevb.networks import ConvNet, Convolution, NetworkKind, default_widths, initialize
from aevb.networks.convolution import GroupNorm, folded, unfolded


def direct_sum(x, weight, bias):
    """Return the convolution of an image (H, W, C), one number at a time."""
    height, width, _ = x.shape
    y = np.zeros((height, width, len(bias)))
    for row, column, out in np.ndindex(y.shape):
        y[row, column, out] = bias[out]
        for i, j in np.ndindex(3, 3):
            if 0 <= row + i - 1 < height and 0 <= column + j - 1 < width:
                y[row, column, out] += weight[out, :, i, j] @ x[row + i - 1, column + j - 1]
    return y


@pytest.mark.float64
@pytest.mark.thorough
def test_a_convolution_is_the_direct_sum():
    layer = initialize(Convolution(3, 4), jax.random.key(0), "paper")
    x = np.random.default_rng(0).normal(size=(2, 5, 7, 3))
    expected = np.stack([direct_sum(image, np.asarray(layer.weight), np.asarray(layer.bias)) for image in x])
    np.testing.assert_allclose(layer(x), expected, atol=1e-12)
    np.testing.assert_allclose(jax.vmap(layer)(x), expected, atol=1e-12)


@pytest.mark.float64
@pytest.mark.thorough
def test_group_normalization_gives_each_group_mean_0_and_variance_1():
    x = np.random.default_rng(0).normal(3.0, 2.0, size=(2, 5, 7, 16))
    groups = np.asarray(GroupNorm(16)(jnp.asarray(x))).reshape(2, 35, 8, 2)
    np.testing.assert_allclose(groups.mean(axis=(1, 3)), 0, atol=1e-12)
    np.testing.assert_allclose(groups.var(axis=(1, 3)), 1, atol=1e-4)


@pytest.mark.thorough
def test_unfolding_is_the_inverse_of_folding():
    x = np.random.default_rng(0).normal(size=(3, 7, 5, 2)).astype(np.float32)
    small = folded(jnp.asarray(x))
    np.testing.assert_array_equal(unfolded(small, 7, 5), x)
    np.testing.assert_array_equal(small[:, 1, 1], x[:, 2:4, 2:4].reshape(3, 8))  # one square is one pixel


@pytest.mark.thorough
@pytest.mark.parametrize("shape", [(28, 20), (7, 5), (16, 12, 3)])
@pytest.mark.parametrize("name", ["conv", "resnet"])
def test_networks_read_and_return_flat_images_of_any_size(name, shape):
    D, kind, widths = int(np.prod(shape)), NetworkKind(name, shape), default_widths(shape)
    encoder = initialize(kind.build(D + 3, widths[::-1], 4, "gelu", side="input"), jax.random.key(0))
    decoder = initialize(kind.build(4, widths, 2 * D, "gelu", side="output"), jax.random.key(1))
    x = np.random.default_rng(0).normal(size=(2, D + 3)).astype(np.float32)

    @jax.jit
    def run(x):
        code = encoder(x)
        return code, decoder(code), jax.vmap(encoder)(x)

    code, y, one_by_one = run(x)
    assert code.shape == (2, 4)
    assert y.shape == (2, 2 * D)
    np.testing.assert_allclose(one_by_one, code, atol=1e-5)
    assert np.all(np.asarray(jnp.std(y, axis=0)) > 0)  # each output depends on the input


@pytest.mark.thorough
def test_pixels_of_the_output_are_where_those_of_the_image_are():
    """A decoder whose last convolution has only a bias gives each image of the output its own constant."""
    decoder = NetworkKind("conv", (6, 4, 2)).build(3, (8,), 2 * 48, "relu", side="output")
    bias = jnp.tile(jnp.arange(4.0), 4)  # of the four places of a square: images 0 and 1, each with two channels
    decoder = eqx.tree_at(lambda network: network.levels[-1].convolution.bias, decoder, bias)
    images = np.asarray(decoder(jnp.zeros(3))).reshape(2, 6, 4, 2)
    np.testing.assert_array_equal(images, np.broadcast_to(np.arange(4.0).reshape(2, 1, 1, 2), images.shape))


def test_images_that_are_too_small_for_the_depth_are_refused():
    with pytest.raises(ValueError, match=r"4 levels halve images of 8 x 5 pixels 4 times, but after 3 they are 1 x 1"):
        NetworkKind("conv", (8, 5)).build(40, (8, 8, 8, 8), 2)
    with pytest.raises(ValueError, match=r"at least 2 x 2 pixels. Use network='mlp'"):
        default_widths((1, 9))


@pytest.mark.thorough
def test_parts_of_the_input_need_not_be_joined():
    """A label next to the image: convolutions do not see it, and are the same for all labels."""
    encoder = initialize(ConvNet(24 + 3, (4,), 5, image_shape=(6, 4), side="input"), jax.random.key(0), "glorot")
    decoder = initialize(ConvNet(2 + 3, (4,), 24, image_shape=(6, 4), side="output"), jax.random.key(1), "glorot")
    rng = np.random.default_rng(0)
    x, z, y = (rng.normal(size=(7, size)).astype(np.float32) for size in (24, 2, 3))
    for network, part in ((encoder, x), (decoder, z)):
        joined = network(jnp.concatenate([part, y], axis=1))
        np.testing.assert_allclose(network(part, y), joined, rtol=1e-5, atol=1e-6)
    program = jax.make_jaxpr(jax.vmap(encoder, in_axes=(None, 0)))(x[0], y)
    shapes = [eqn.outvars[0].aval.shape for eqn in program.eqns]
    images = [shape for shape in shapes if len(shape) >= 3]
    assert images
    assert all(shape[0] != 7 for shape in images)
