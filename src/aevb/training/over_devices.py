"""A learner on several devices: each computes some rows of every minibatch, and all make the same step."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from aevb.arrays import num_rows
from aevb.parallel import ROWS, Share, group
from aevb.training.divided import DividedRows
from aevb.training.sharded import ShardedOverDevices, divided_state, is_divided
from aevb.training.source import Source

MAX_SOURCES = 3  # that are kept on several devices: sequences are in so many buckets


@final
@dataclass(frozen=True)
class OverDevices:
    """A learner whose steps are divided among the devices of a mesh; everything else is as in the learner itself.

    Parameters are replicated. The noise of a step and its rows are drawn for the whole minibatch, as on one device, and
    divided: they are functions of the run's key, the step and the place of a row in the minibatch. XLA computes the
    part of each device only. Gradients are averaged in one message, see :meth:`aevb.parallel.Share.average`.

    Args:
        learner: The learner.
        mesh: The devices, along one axis.
    """

    learner: Any
    mesh: Mesh

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "learner"), name)

    def step(self, state: Any, batch: Any, noise: Any, places: Array) -> tuple[Any, Any]:
        """Learn from one minibatch (M, ...)."""
        M, k = len(places), self.mesh.size
        learner = self.learner.sharing(Share(M, k))
        axes = self._axes(state, jax.tree.map(lambda leaf: leaf[0], batch), M)
        if M % k:  # the rows at the start are repeated; the repetitions do not count
            filled = np.arange(-(-M // k) * k) % M
            if num_rows(batch) == M:  # divided rows are filled up already
                batch = jax.tree.map(lambda leaf: leaf[filled], batch)
            places = places[filled]
            noise = jax.tree.map(lambda leaf, axis: leaf if axis < 0 else jnp.take(leaf, filled, axis), noise, axes)
        of_noise = jax.tree.map(lambda axis: P() if axis < 0 else P(*[None] * axis, ROWS), axes)
        specs: Any = {"in_specs": (P(), P(ROWS), of_noise, P(ROWS)), "out_specs": P()}
        # Replication is not checked, because the rules for it do not cover all that models contain.
        return jax.shard_map(learner.step, mesh=self.mesh, **specs, check_vma=False)(state, batch, noise, places)

    def _axes(self, state, x, num_rows):
        """Return which axis of each array of a step's noise counts the rows; -1 for none, as of masks of dropout."""

        def shapes(size):
            return jax.eval_shape(lambda: self.learner.draw_noise(state, jax.random.key(0), x, (1, size)))

        def axis(one, other):
            differing = [
                place for place, pair in enumerate(zip(one.shape, other.shape, strict=True)) if len({*pair}) > 1
            ]
            return differing[0] - 1 if differing else -1  # without the axis of steps

        return jax.tree.map(axis, shapes(num_rows), shapes(num_rows + 1))


KINDS = OverDevices, ShardedOverDevices


def over_devices(learner: Any) -> Any:
    """Return a learner on all devices that work together; unchanged if there is one, or if its steps need all rows."""
    mesh = group().mesh
    if mesh is None or isinstance(learner, KINDS) or not getattr(learner, "can_share", False):
        return learner
    return (ShardedOverDevices if group().shards_parameters else OverDevices)(learner, mesh)


def on_one_device(learner: Any) -> Any:
    """Return the learner itself."""
    return learner.learner if isinstance(learner, KINDS) else learner


def called(program: Callable, *arguments: Any, learner: Any, plan: Any) -> Any:
    """Call a program with a learner and the same arguments in all processes; return its results on this device.

    What is divided among devices stays so.
    """
    options, (state, source, *rest) = {"learner": learner, "plan": plan}, arguments
    if not isinstance(learner, KINDS):
        return program(state, whole(source), *rest, **options)
    with group().waiting():
        state = divided_state(state, learner.mesh) if isinstance(learner, ShardedOverDevices) else state
        state, rest = replicated((state, rest), learner.mesh)
        results = program(state, _kept(source, learner.mesh), *rest, **options)
        return jax.block_until_ready(jax.tree.map(_here, results))


def whole(source: Source) -> Source:
    """Return the rows of all processes, if a source has only some of them; all processes must call it."""
    rows = getattr(source, "rows", None)  # records of any structure have none
    return Source(rows.gathered(), source.conversion) if isinstance(rows, DividedRows) else source


def replicated(tree: Any, mesh: Mesh) -> Any:
    """Return arrays of this process, the same in all of them, on all devices of a mesh; nothing is sent."""
    return jax.tree.map(partial(_everywhere, mesh=mesh), tree)


_sources: list[tuple[Any, Any]] = []  # the last few, with their copies on all devices


def _kept(source, mesh):
    """Return a source on all devices of a mesh; if this process has several, it is copied once only."""
    if len(mesh.local_devices) == 1 or isinstance(source.rows, DividedRows):
        return replicated(source, mesh)
    for known, copies in _sources:
        if known is source:
            return copies
    _sources.append((source, replicated(source, mesh)))
    del _sources[:-MAX_SOURCES]
    return _sources[-1][1]


def _everywhere(leaf, *, mesh):
    if not isinstance(leaf, Array | np.ndarray) or is_divided(leaf):
        return leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(
            _everywhere(jax.random.key_data(leaf), mesh=mesh), impl=jax.random.key_impl(leaf)
        )
    copies = [jax.device_put(leaf, device) for device in mesh.local_devices]
    return jax.make_array_from_single_device_arrays(leaf.shape, NamedSharding(mesh, P()), copies)


def _here(leaf):
    return leaf.addressable_data(0) if isinstance(leaf, Array) and not is_divided(leaf) else leaf
