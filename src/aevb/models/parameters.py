"""Split a model into learned arrays, constant arrays, and the structure around them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
from jax import Array
from numpyro.distributions import Distribution


@dataclass(frozen=True)
class Skeleton:
    """A model without its arrays: hashable, so that compiled programs can be cached by it."""

    leaves: tuple
    structure: Any


class Parts(NamedTuple):
    """A model in three parts: learned arrays, other arrays by name, and the skeleton around them."""

    parameters: Any
    constants: dict[str, Array]
    skeleton: Skeleton


@dataclass(frozen=True)
class _Place:
    """Placeholder for a constant in a skeleton."""

    name: str


def split(model) -> Parts:
    """Split a model into its parts.

    Floating-point arrays of modules are parameters. Those inside a distribution (a fixed prior, the units of the data)
    are constants: a distribution stored in a model is an assumption, not something to learn.
    """
    is_parameter = jax.tree.map(
        lambda node: not isinstance(node, Distribution) and eqx.is_inexact_array(node),
        model,
        is_leaf=lambda node: isinstance(node, Distribution),
    )
    parameters, rest = eqx.partition(model, is_parameter)
    leaves = list(named_leaves(rest))
    constants = {name: leaf for name, leaf in leaves if eqx.is_array(leaf)}
    bones = tuple(_Place(name) if name in constants else leaf for name, leaf in leaves)
    return Parts(parameters, constants, Skeleton(bones, jax.tree.structure(rest)))


def join(parameters, constants: dict[str, Array], skeleton: Skeleton):
    """Return the model with these parts."""
    leaves = [constants[bone.name] if isinstance(bone, _Place) else bone for bone in skeleton.leaves]
    return eqx.combine(parameters, jax.tree.unflatten(skeleton.structure, leaves))


def named_leaves(node, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a pytree in its own order, each with a name that is the same in every process.

    NumPyro flattens a distribution's parameters in the order of a set of strings, which differs between processes. If
    they were identified by position, a loc could be read from a file as a scale, and compiled programs would not be
    found in the cache. They are named after their fields instead.
    """
    children, _ = jax.tree_util.tree_flatten_with_path(node, is_leaf=lambda child: child is not node)
    for path, child in children:
        if not path:
            yield name, child
        elif isinstance(node, Distribution):
            yield from named_leaves(child, f"{name}.{node.gather_pytree_data_fields()[path[0].key]}")
        else:
            yield from named_leaves(child, name + jax.tree_util.keystr(path))
