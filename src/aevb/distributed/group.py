"""Processes that work together: what they tell each other between the steps of a run."""

import io
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, final

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh

from aevb.arrays import checksum
from aevb.distributed.meeting import Member, PeersError
from aevb.distributed.watch import Watch
from aevb.parallel import PeerFailedError

GOES_ON, HAS_NO_MORE, IS_INTERRUPTED, HAS_FAILED = range(4)
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
PATIENCE = 5.0  # seconds after which a second signal interrupts at once

_OF_THE_NETWORK = re.compile("gloo|nccl|peer|socket|connection|unavailable|deadline", re.IGNORECASE)

T = TypeVar("T")


@final
class Group:
    """The processes of a run, see :class:`aevb.parallel.Alone` for what one process does.

    Args:
        mesh: All devices of all processes.
        members: The processes.
        process_id: Which of them this is.
        watch: Notices if one dies; None for one process with several devices.
        shards_parameters: Whether large arrays of a model are divided among the devices.
    """

    def __init__(
        self,
        mesh: Mesh,
        members: list[Member],
        process_id: int,
        watch: Watch | None,
        shards_parameters: bool = False,
    ):
        self.shards_parameters = shards_parameters
        self.mesh, self.members, self.process_id, self._watch = mesh, members, process_id, watch
        self.num_processes, self.is_first = len(members), process_id == 0
        self._problem: BaseException | None = None  # of this process, to be told at the next chunk
        self._interrupted: float | None = None  # when a signal arrived
        self._depth = 0

    def _gathered(self, tree: Any) -> Any:
        """Return the values of all processes, (k, ...)."""
        if self.num_processes == 1:
            return jax.tree.map(lambda leaf: np.asarray(leaf)[None], tree)
        with self.waiting():
            return multihost_utils.process_allgather(tree)

    def gathered(self, array: jax.Array) -> np.ndarray:
        """Return an array that is divided among the processes."""
        with self.waiting():
            return np.asarray(multihost_utils.process_allgather(array, tiled=True))

    def owners(self, num_places: int) -> np.ndarray:
        """Return the process of each place of a minibatch, which is filled up to a multiple of the devices."""
        devices = self.mesh.devices.ravel()
        return np.repeat([device.process_index for device in devices], -(-num_places // len(devices)))

    def shared(self, function: Callable[[Any], dict], items: Sequence, owners: Sequence[int]) -> list[dict]:
        """Return the function's values, arrays by name, for all items; each is computed by the process that owns it.

        Raises:
            PeersError: The function failed in another process; in this one, its own error is raised.
        """
        mine: dict[str, Any] = {}
        error = None
        try:
            for number, (item, owner) in enumerate(zip(items, owners, strict=True)):
                if owner == self.process_id:
                    mine |= {f"{number} {name}": value for name, value in function(item).items()}
        except Exception as problem:
            mine, error = {"error": np.array(str(problem))}, problem
        file = io.BytesIO()
        np.savez(file, **mine)
        found: list[dict] = [{} for _ in items]
        for number, data in enumerate(self._bytes(file.getvalue())):
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                for key in archive.files:
                    if key == "error":
                        error = error or PeersError(f"{self.members[number]}: {archive[key]}")
                        continue
                    item, _, name = key.partition(" ")
                    found[int(item)][name] = archive[key]
        if error is not None:
            raise error
        return found

    def texts(self, text: str) -> list[str]:
        """Return the texts of all processes."""
        return [data.decode() for data in self._bytes(text.encode())]

    def _bytes(self, data):
        """Return the bytes of all processes."""
        lengths = self._gathered(np.array(len(data), np.int64))
        found = self._gathered(np.frombuffer(data.ljust(int(lengths.max()), b"\0"), np.uint8))
        return [np.asarray(part).tobytes()[:length] for part, length in zip(found, lengths, strict=True)]

    def leave(self, has_failed: bool = False) -> None:
        """Tell the others that this process ends."""
        if self._watch is not None:
            self._watch.leave(has_failed)

    def together(self, function: Callable[[Any], T], items: Iterable) -> list[T]:
        """Return the function's values for all items; each process computes every k-th and all get the same bits."""
        k, me, mine, number, spare = self.num_processes, self.process_id, [], -1, None
        for number, item in enumerate(items):
            spare = item if number == 0 else spare
            if number % k == me:
                mine.append(jax.tree.map(np.asarray, function(item)))
        longest = -(-(number + 1) // k)
        if len(mine) < longest:  # to fill up
            mine.append(jax.tree.map(np.asarray, function(spare)))
        found = self._gathered(jax.tree.map(lambda *parts: np.stack(parts), *mine))
        return [jax.tree.map(lambda leaf, n=n: leaf[n % k, n // k], found) for n in range(number + 1)]

    def from_first(self, function: Callable[[], bytes]) -> bytes:
        """Return what the function returns in the first process; its error is raised there, and told to the others."""
        data, error = b"", None
        if self.is_first:
            try:
                data = function()
            except Exception as problem:
                data, error = str(problem).encode(), problem
        sizes = self._gathered(np.array([len(data), error is not None], np.int64))
        length, has_failed = map(int, sizes[0])
        if length:
            padded = np.frombuffer(data.ljust(length, b"\0"), np.uint8)
            with self.waiting():
                data = np.asarray(multihost_utils.broadcast_one_to_all(padded)).tobytes()
        if error is not None:
            raise error
        if has_failed:
            raise PeersError(f"{self.members[0]}: {data.decode(errors='replace')}")
        return data

    def verify(self, facts: Callable[[], dict[str, str]]) -> None:
        """Raise an error in all processes if any of these facts differ between them."""
        mine = facts()
        digests = [list(bytes.fromhex(checksum([], text))) for text in mine.values()]
        found = self._gathered(np.array(digests, np.uint8))  # (k, facts, 32)
        different = np.argwhere((found != found[0]).any(axis=-1))
        if len(different):
            process, fact = map(int, different[0])
            name = list(mine)[fact]
            raise PeersError(
                f"{name}: not the same in {self.members[process]} as in {self.members[0]}. All processes must be "
                f"started with the same data, settings and versions. Here it is {list(mine.values())[fact][:80]}."
            )

    @contextmanager
    def training(self) -> Iterator[None]:
        """Work together: a signal in any process ends the work of all after a chunk, and so does a dead process."""
        before = {}
        if self._depth == 0 and threading.current_thread() is threading.main_thread():
            before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        try:
            with self._busy():
                yield
                self._gathered(np.zeros((), np.int32))  # nobody leaves before all are here
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def _busy(self) -> Iterator[None]:
        """Expect all other processes to be there."""
        self._depth += 1
        self._tell_watch()
        try:
            yield
        finally:
            self._depth -= 1
            self._tell_watch()

    def _tell_watch(self):
        if self._watch is not None:
            self._watch.is_busy = self._depth > 0

    def _on_signal(self, number, frame):
        now = time.monotonic()
        if self._interrupted is not None and now - self._interrupted > PATIENCE:
            raise KeyboardInterrupt
        self._interrupted = self._interrupted or now

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Keep an error for :meth:`in_step`, so that all processes learn of it."""
        try:
            yield
        except Exception as error:
            self._problem = error

    def in_step(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items while all processes have one; an error or a signal in one of them ends the iteration in all."""
        source = iter(items)
        while True:
            item, code = None, GOES_ON
            if self._problem is None:
                try:
                    item = next(source)
                except StopIteration:
                    code = HAS_NO_MORE
                except Exception as error:
                    self._problem = error
            if self._interrupted is not None:
                code = IS_INTERRUPTED
            if self._problem is not None:
                code = HAS_FAILED
            codes = self._gathered(np.array(code, np.int32)).tolist()
            if any(other != GOES_ON for other in codes):
                self._stop(codes)
                return
            assert item is not None
            yield item

    def _stop(self, codes):
        """Raise what ends the run; nothing if all processes have no more items."""
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem
        if HAS_FAILED in codes:
            failed = self.members[codes.index(HAS_FAILED)]
            raise PeerFailedError(PeersError(f"{failed} failed; see its own messages. All processes end."))
        if IS_INTERRUPTED in codes:
            self._interrupted = None
            raise KeyboardInterrupt
        if set(codes) != {HAS_NO_MORE}:
            empty = self.members[codes.index(HAS_NO_MORE)]
            message = f"{empty} has fewer batches than others. Give all processes the same data."
            raise PeerFailedError(PeersError(message))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Calls that fail if another process has died: the watch then names it and ends this one."""
        with self._busy():
            try:
                yield
            except (jax.errors.JaxRuntimeError, ValueError) as error:  # JAX's own type depends on the program
                if self._watch is not None and _OF_THE_NETWORK.search(str(error)):
                    self._watch.wait_for_verdict()
                raise
