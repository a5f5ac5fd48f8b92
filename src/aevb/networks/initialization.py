"""Initial values for the parameters of a network."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.distributions import Distribution

Parameters = TypeVar("Parameters")

INITIALIZATIONS = ("glorot", "paper")
PAPER_STD = 0.1  # N(0, 0.01): 0.01 is the variance; with a standard deviation of 0.01 learning starts much more slowly


def initialize(parameters: Parameters, key: Array, scheme: str = "glorot") -> Parameters:
    r"""Draw initial values for all floating-point arrays of a pytree.

    ``"glorot"`` draws matrices from :math:`N(0, 2 / (n_{in} + n_{out}))` and sets vectors to zero; ``"paper"`` draws
    everything, biases included, from :math:`N(0, 0.01)`, where 0.01 is the variance. Distributions, such as a fixed
    prior, are unchanged.

    Args:
        parameters: Any pytree of arrays, such as an Equinox module.
        key: Random key.
        scheme: ``"glorot"`` or ``"paper"``.

    Returns:
        A pytree of the same structure.

    Raises:
        ValueError: The scheme is unknown.

    Example:
        >>> from aevb.networks import MLP
        >>> network = initialize(MLP(4, (3,), 2), jax.random.key(0), "paper")
        >>> network.layers[0].weight.shape
        (3, 4)

    Paper: §5.
    """
    if scheme not in INITIALIZATIONS:
        raise ValueError(f"scheme: got {scheme!r}, expected one of {INITIALIZATIONS}.")
    arrays, rest = eqx.partition(parameters, eqx.is_inexact_array, is_leaf=lambda node: isinstance(node, Distribution))
    leaves, structure = jax.tree.flatten(arrays)
    drawn = _draw(key, [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves], scheme)
    return eqx.combine(jax.tree.unflatten(structure, drawn), rest)


@eqx.filter_jit
def _draw(key, leaves, scheme):
    # One draw for everything in one program: compiling one program per array would take seconds before the first step.
    normals = jax.random.normal(key, (sum(leaf.size for leaf in leaves),))
    parts = jnp.split(normals, np.cumsum([leaf.size for leaf in leaves])[:-1])
    return [
        (_standard_deviation(leaf.shape, scheme) * part.reshape(leaf.shape)).astype(leaf.dtype)
        for leaf, part in zip(leaves, parts, strict=True)
    ]


def _standard_deviation(shape, scheme):
    if scheme == "paper":
        return PAPER_STD
    if len(shape) < 2:
        return 0.0
    fan_out, fan_in, *kernel = shape  # in a convolution, each output sees and each input feeds a whole kernel
    return np.sqrt(2 / ((fan_in + fan_out) * np.prod(kernel)))
