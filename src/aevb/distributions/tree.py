"""Shared code of distributions over trees of arrays: shapes that are trees, and draws made one by one."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import Distribution, constraints


class TreeDistribution(Distribution):
    """A distribution whose draws are trees of arrays, such as dictionaries; `shape` and `event_shape` are trees too.

    Abstract: see :class:`~aevb.distributions.Product`, :class:`~aevb.distributions.Chain` and
    :class:`~aevb.distributions.MarkovChain`.
    """

    def __init__(self):
        super().__init__(validate_args=False)

    def shape(self, sample_shape: tuple[int, ...] = ()) -> Any:
        """Return the shapes of draws, one tuple per array in the tree."""
        draws = jax.eval_shape(lambda: self.sample(jax.random.key(0), sample_shape))
        return jax.tree.map(lambda leaf: leaf.shape, draws)

    @property
    def event_shape(self) -> Any:
        """The shapes of one draw."""
        return self.shape()


def sampled(draw: Callable, key, sample_shape: tuple[int, ...]) -> Any:
    """Return draws of this shape, given a function that makes one draw from a key."""
    if not sample_shape:
        return draw(key)
    draws = jax.vmap(draw)(jax.random.split(key, int(np.prod(sample_shape))))
    return jax.tree.map(lambda leaf: leaf.reshape(*sample_shape, *leaf.shape[1:]), draws)


def over_samples(function: Callable, distribution: Distribution, tree: Any) -> Any:
    """Apply a function of one draw (or its noise) to a tree with any leading sample shape."""
    leaf = jax.tree.leaves(tree)[0]
    shape = jax.tree.leaves(distribution.shape(), is_leaf=lambda node: isinstance(node, tuple))[0]
    for _ in range(jnp.ndim(leaf) - len(shape)):
        function = jax.vmap(function)
    return function(tree)


def has_real_support(distribution: Distribution) -> bool:
    """Whether a distribution's density is positive for all real vectors, or trees of them."""
    is_constraint = lambda node: isinstance(node, constraints.Constraint)  # noqa: E731
    supports: list[Any] = jax.tree.leaves(distribution.support, is_leaf=is_constraint)
    for number, support in enumerate(supports):
        while hasattr(support, "base_constraint"):
            support = support.base_constraint
        supports[number] = support
    return all(support in (constraints.real, constraints.real_vector) for support in supports)
