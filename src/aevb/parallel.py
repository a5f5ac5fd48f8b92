"""Work on several devices and processes: the part of one of them, and what they do together.

Without :func:`aevb.distributed.start` there is one process that does everything: its parts below do nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeVar, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree

ROWS = "rows"  # the axis of a mesh along which the rows of a minibatch are divided

T = TypeVar("T")


@final
class Whole(NamedTuple):
    """All rows of each minibatch, on one device."""

    def size(self, values: Array) -> int:
        """Return M, for a value of each row (M,)."""
        return len(values)

    def sum(self, values: Array) -> Array:
        """Return the sum over the minibatch."""
        return jnp.sum(values)

    def mean(self, values: Array) -> Array:
        """Return the average over the minibatch."""
        return jnp.mean(values)

    def average(self, tree: Any) -> Any:
        """Return the average over the devices."""
        return tree

    def agreed(self, tree: Any) -> Any:
        """Return averages over this device's rows as those over the minibatch."""
        return tree

    def gather(self, tree: Any) -> Any:
        """Return the rows of all devices."""
        return tree


@final
class Share(NamedTuple):
    """The rows of each minibatch that one of several devices computes, inside of `jax.shard_map`.

    Each device has ceil(M / k) rows. If k does not divide M, the last ones of all devices together repeat others and do
    not count. An objective is a sum over rows, plus what does not depend on them; with :meth:`sum` it is such that the
    average of its gradient over the devices, :meth:`average`, is that of the whole minibatch.
    """

    num_rows: int  # M
    num_devices: int  # k

    def size(self, values: Array) -> int:
        """Return M."""
        return self.num_rows

    def sum(self, values: Array) -> Array:
        """Return k times the sum over the rows of this device (m,): on average, the sum over the minibatch."""
        if self.num_rows % self.num_devices:
            place = lax.axis_index(ROWS) * len(values) + jnp.arange(len(values))
            values = jnp.where(place < self.num_rows, values, 0)
        return self.num_devices * jnp.sum(values)

    def mean(self, values: Array) -> Array:
        """Return what is, on average over the devices, the average over the minibatch."""
        return self.sum(values) / self.num_rows

    def average(self, tree: Any) -> Any:
        """Return the average over the devices, in one message: each costs milliseconds, whatever its size."""
        vector, restore = ravel_pytree(tree)
        return restore(lax.pmean(vector, ROWS))

    def agreed(self, tree: Any) -> Any:
        """Return averages over this device's rows as those over the minibatch; gradients are those of its rows."""
        known = self.average(lax.stop_gradient(tree))
        return jax.tree.map(lambda value, mine: value + (mine - lax.stop_gradient(mine)), known, tree)

    def gather(self, tree: Any) -> Any:
        """Return the rows of all devices, one after the other."""
        return lax.all_gather(tree, ROWS, tiled=True)


WHOLE = Whole()


class PeerFailedError(Exception):
    """Another process failed while it worked together with this one; `cause` says which."""

    def __init__(self, cause: Exception):
        super().__init__(str(cause))
        self.cause = cause


@final
class Alone:
    """One process on one device."""

    process_id = 0
    num_processes = 1
    is_first = True  # which writes files and shows progress
    mesh = None  # of devices
    shards_parameters = False  # whether large arrays of a model are divided among the devices

    def together(self, function: Callable[[Any], T], items: Iterable) -> list[T]:
        """Return the function's values for all items; processes divide them among each other."""
        return list(map(function, items))

    def owners(self, num_places: int) -> np.ndarray:
        """Return the process of each place of a minibatch."""
        return np.zeros(num_places, int)

    def shared(self, function: Callable[[Any], dict], items: Sequence, owners: Sequence[int]) -> list[dict]:
        """Return the function's values, arrays by name, for all items; each is computed by the process that owns it."""
        return list(map(function, items))

    def texts(self, text: str) -> list[str]:
        """Return the texts of all processes."""
        return [text]

    def from_first(self, function: Callable[[], bytes]) -> bytes:
        """Return what the function returns in the first process."""
        return function()

    def verify(self, facts: Callable[[], dict[str, str]]) -> None:
        """Raise an error in all processes if any of these facts differ between them."""

    def training(self) -> AbstractContextManager[None]:
        """Return the context of a run, in which processes work together."""
        return nullcontext()

    def in_step(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items; errors and Ctrl-C in one process end the iteration in all of them."""
        return iter(items)

    def deferred(self) -> AbstractContextManager[None]:
        """Return a context whose errors are raised by :meth:`in_step`, in all processes."""
        return nullcontext()

    def waiting(self) -> AbstractContextManager[None]:
        """Return a context for calls that fail if another process has died; the message then names it."""
        return nullcontext()


ALONE = Alone()
_groups: list[Any] = [ALONE]


def group() -> Any:
    """Return the processes that work together: :class:`Alone`, or :class:`aevb.distributed.group.Group`."""
    return _groups[-1]


def work_as(members: Any) -> None:
    """Let these processes work together from now on."""
    _groups.append(members)
