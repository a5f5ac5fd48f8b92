"""What of a model is learned, what is data, and what is only shape."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
from numpyro.distributions import Distribution


@dataclass(frozen=True)
class Skeleton:
    """A model without its arrays: hashable, so that compiled programs can be found again by it."""

    leaves: tuple
    structure: Any


class Parts(NamedTuple):
    """A model in three parts: learned arrays, other arrays, and the skeleton that holds them."""

    parameters: Any
    constants: Any
    skeleton: Skeleton


def split(model) -> Parts:
    """Take a model apart.

    Floating-point arrays of modules are parameters. Those inside a distribution (a fixed prior, the units of the data)
    are constants: a distribution stored in a model is a statement, not something to be learned.
    """
    is_parameter = jax.tree.map(
        lambda node: not isinstance(node, Distribution) and eqx.is_inexact_array(node),
        model,
        is_leaf=lambda node: isinstance(node, Distribution),
    )
    parameters, rest = eqx.partition(model, is_parameter)
    constants, shape = eqx.partition(rest, eqx.is_array)
    leaves, structure = jax.tree.flatten(shape)
    return Parts(parameters, constants, Skeleton(tuple(leaves), structure))


def join(parameters, constants, skeleton: Skeleton):
    """Put a model together again."""
    return eqx.combine(parameters, constants, jax.tree.unflatten(skeleton.structure, skeleton.leaves))
