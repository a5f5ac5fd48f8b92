"""A temporal convolution over the steps of a sequence."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from aevb.networks.mlp import Linear

KERNEL = 3  # steps that an output of a layer sees
NUM_LAYERS = 4  # with dilations 1, 3, 9 and 27: together they see 81 steps


class TCN(eqx.Module):
    r"""Dilated causal convolutions with residual connections (Bai, Kolter and Koltun, 2018, section 3).

    .. math:: h^{k+1}_t = h^k_t + \mathrm{gelu}\Big(b + \sum_{i=0}^{2} W_i h^k_{t - i 3^k}\Big), \qquad h^0 = W x + b

    Steps that do not exist are zero in every layer, as if they were not there. An output sees 81 steps.

    Args:
        in_size: Width of the input of a step.
        out_size: Width of the layers and of the output.

    Example:
        >>> TCN(3, 5)(jnp.zeros((7, 3)), jnp.arange(7) < 4).shape
        (7, 5)
    """

    first: Linear
    layers: tuple[Linear, ...]

    def __init__(self, in_size: int, out_size: int):
        self.first = Linear(in_size, out_size)
        self.layers = tuple(Linear(KERNEL * out_size, out_size) for _ in range(NUM_LAYERS))

    @property
    def in_size(self) -> int:
        """Width of the input of a step."""
        return self.first.weight.shape[1]

    @property
    def out_size(self) -> int:
        """Width of the output of a step."""
        return self.first.weight.shape[0]

    @property
    def read_hidden(self) -> list[Array]:
        """The matrices that read inputs and hidden units, see :mod:`aevb.models.dropout`."""
        return [layer.weight for layer in (self.first, *self.layers)]

    def __call__(self, x: Array, exists: Array, *, reverse: bool = False) -> Array:
        """Return the output at each step, (T, out_size), which depends on this and earlier steps.

        Args:
            x: Inputs, (T, in_size).
            exists: Which steps exist, (T,).
            reverse: Whether it depends on later steps instead.
        """
        T, here = len(x), exists[:, None]
        h = jnp.where(here, self.first(x), 0)
        for number, layer in enumerate(self.layers):
            shifts = [min(place * KERNEL**number, T) for place in range(KERNEL)]
            parts = [jnp.pad(h, ((0, s), (0, 0)))[s:] if reverse else jnp.pad(h, ((s, 0), (0, 0)))[:T] for s in shifts]
            h = jnp.where(here, h + jax.nn.gelu(layer(jnp.concatenate(parts, axis=-1))), 0)
        return h
