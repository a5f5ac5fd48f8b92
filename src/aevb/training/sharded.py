"""A learner whose large arrays are divided among devices: parameters, and what the optimizer keeps for them.

Rajbhandari, Rasley, Ruwase and He, ZeRO: Memory optimizations toward training trillion parameter models (2020). The
step is that of one device, on arrays that are divided among several: XLA gathers a weight matrix where it is used, and
each device updates its own part.
"""

from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from aevb.parallel import ROWS, group

MIN_SIZE = 2**14  # numbers in an array that is divided


@final
@dataclass(frozen=True)
class ShardedOverDevices:
    """A learner whose state and minibatches are divided among the devices of a mesh.

    Args:
        learner: The learner.
        mesh: The devices, along one axis.
    """

    learner: Any
    mesh: Mesh

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "learner"), name)

    def step(self, state: Any, batch: Any, noise: Any, places: Array) -> tuple[Any, Any]:
        """Learn from one minibatch (M, ...); rows are divided if the number of devices divides M."""
        M = len(places)
        batch = jax.tree.map(lambda leaf: leaf[:M], batch)  # divided rows may be filled up
        if M % self.mesh.size == 0:
            batch = jax.tree.map(lambda leaf: self._constrained(leaf, P(ROWS)), batch)
        state, report = self.learner.step(state, batch, noise, places)
        return jax.tree.map(lambda leaf: self._constrained(leaf, _spec(leaf, self.mesh)), state), report

    def _constrained(self, leaf, spec):
        return lax.with_sharding_constraint(leaf, NamedSharding(self.mesh, spec))


def divided_state(state: Any, mesh: Mesh) -> Any:
    """Return a state whose large arrays are divided among the devices; those that are already stay as they are."""

    def place(leaf):
        if not isinstance(leaf, Array | np.ndarray) or (spec := _spec(leaf, mesh)) == P() or is_divided(leaf):
            return leaf
        whole = np.asarray(leaf)
        return jax.make_array_from_callback(leaf.shape, NamedSharding(mesh, spec), lambda index: whole[index])

    return jax.tree.map(place, state)


def is_divided(leaf: Any) -> bool:
    """Whether an array is divided among devices."""
    return isinstance(leaf, Array) and not isinstance(leaf, Tracer) and not leaf.is_fully_replicated


def whole_state(state: Any) -> Any:
    """Return a state whose arrays are all in this process; if some are not, all processes must call it."""
    return jax.tree.map(lambda leaf: group().gathered(leaf) if is_divided(leaf) else leaf, state)


def is_finite(leaf: Any) -> bool:
    """Whether an array has neither NaN nor infinity; if it is divided, all processes must call it."""
    if not is_divided(leaf):
        return bool(np.isfinite(leaf).all())
    mine = all(np.isfinite(part.data).all() for part in leaf.addressable_shards)
    return group().texts(str(mine)) == ["True"] * group().num_processes


def _spec(leaf, mesh):
    """Return how an array is divided: along its longest axis that the number of devices divides, if it is large."""
    axes = [axis for axis, length in enumerate(leaf.shape) if length % mesh.size == 0]
    if leaf.size < MIN_SIZE or not axes or jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return P()
    longest = max(axes, key=lambda axis: leaf.shape[axis])
    return P(*[None] * longest, ROWS)
