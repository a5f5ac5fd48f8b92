"""Multi-layer perceptrons of any depth.

Paper: App. C.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from aevb.arrays import filled

# By name, because a model file cannot contain functions.
ACTIVATIONS = {
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "softplus": jax.nn.softplus,
    "elu": jax.nn.elu,
    "sigmoid": jax.nn.sigmoid,
    "identity": lambda x: x,
}


class Linear(eqx.Module):
    """x -> W x + b, over the last axis of x, which may be given in several parts."""

    weight: Array  # (out, in)
    bias: Array  # (out,)

    def __init__(self, in_size: int, out_size: int):
        # Zeros: values come from `initialize`, which draws all parameters of a model at once.
        self.weight = filled((out_size, in_size), 0)
        self.bias = filled(out_size, 0)

    def __call__(self, *parts: Array) -> Array:
        """Return W x + b, for the parts of x.

        Parts are not concatenated: under `vmap` over one of them, the products of the others are computed once.
        """
        sizes = [part.shape[-1] if jnp.ndim(part) else 0 for part in map(jnp.asarray, parts)]
        if sum(sizes) != self.weight.shape[1]:
            shapes = " and ".join(str(jnp.shape(part)) for part in parts)
            raise ValueError(f"x has shape {shapes}, but this layer expects {self.weight.shape[1]} values.")
        weights = [self.weight] if len(parts) == 1 else jnp.split(self.weight, list(accumulate(sizes))[:-1], axis=1)
        products = [part @ weight.T for part, weight in zip(parts, weights, strict=True)]
        return sum(products[1:], products[0]) + self.bias


class MLP(eqx.Module):
    r"""Fully connected network with hidden layers of any number and width.

    .. math:: h_0 = x, \quad h_{k+1} = f(W_k h_k + b_k), \quad y = W_K h_K + b_K

    Args:
        in_size: Width of the input.
        hidden: Widths of the hidden layers; empty for a linear map.
        out_size: Width of the output.
        activation: A key of ``ACTIVATIONS``; the paper's is ``"tanh"``.
        num_shortcuts: To this many outputs, the first ones, a linear function of the inputs is added: :math:`S x`.

    Example:
        >>> from aevb.networks import MLP
        >>> network = MLP(784, (500,), 10)
        >>> network(jnp.zeros(784)).shape
        (10,)

    Paper: App. C.
    """

    layers: tuple[Linear, ...]
    activation: str = eqx.field(static=True)
    shortcut: Array | None  # S, (num_shortcuts, in)

    def __init__(
        self,
        in_size: int,
        hidden: Sequence[int],
        out_size: int,
        activation: str = "tanh",
        *,
        num_shortcuts: int = 0,
    ):
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation: got {activation!r}, expected one of {tuple(ACTIVATIONS)}.")
        sizes = (in_size, *hidden, out_size)
        self.layers = tuple(Linear(*pair) for pair in pairwise(sizes))
        self.activation = activation
        self.shortcut = filled((num_shortcuts, in_size), 0) if num_shortcuts else None

    @property
    def in_size(self) -> int:
        """Width of the input."""
        return self.layers[0].weight.shape[-1]

    @property
    def out_size(self) -> int:
        """Width of the output."""
        return self.layers[-1].weight.shape[-2]

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return tuple(layer.weight.shape[-2] for layer in self.layers[:-1])

    def resized(self, in_size: int, out_size: int) -> "MLP":
        """Return a network of the same form with other sizes, all parameters zero."""
        num_shortcuts = 0 if self.shortcut is None else len(self.shortcut)
        return MLP(in_size, self.hidden, out_size, self.activation, num_shortcuts=num_shortcuts)

    @property
    def read_hidden(self) -> list[Array]:
        """The matrices that read hidden units, see :mod:`aevb.models.dropout`."""
        return [layer.weight for layer in self.layers[1:]]

    def __call__(self, *parts: Array) -> Array:
        """Return y, for x of shape (..., in_size), or for its parts, see :class:`Linear`."""
        first, *others = self.layers
        y = first(*parts)
        for layer in others:
            y = layer(ACTIVATIONS[self.activation](y))
        if self.shortcut is None:
            return y
        direct = jnp.concatenate(parts, axis=-1) @ self.shortcut.T
        return y + jnp.pad(direct, [(0, 0)] * (y.ndim - 1) + [(0, y.shape[-1] - direct.shape[-1])])
