"""Checkpoints of runs: one file for each of the last saves, written atomically."""

import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from aevb.arrays import checksum
from aevb.errors import shown
from aevb.files import plain
from aevb.parallel import group
from aevb.training.position import Position
from aevb.training.sharded import whole_state
from aevb.training.state_file import CheckpointError, bytes_of, in_form_of, parsed, read_about, write_state

FORMAT = 3  # raise it with every change to the contents of a position or a chunk
_ARRAYS = ("state", "best_state", "reports")  # of a position; everything else is plain numbers


class SaveError(Exception):
    """A run could not be saved; `cause` is the system's error, with a note that earlier checkpoints are intact."""

    def __init__(self, cause: OSError, folder: Path):
        super().__init__(str(cause))
        cause.add_note(f"The run could not be saved in {folder}; earlier checkpoints there are intact.")
        self.cause = cause


class Checkpoints:
    """The last checkpoints of a run, in a folder.

    Each file contains the run's latest and best states; any one of them is enough to resume.

    Args:
        folder: Where they are stored.
        purpose: What identifies the run: its settings and a checksum of its data. Checkpoints of other runs are
            refused.
        every: Seconds between checkpoints; 0 for one after each chunk.
        keep: How many are kept.
    """

    def __init__(self, folder, purpose: dict[str, Any], every: float = 60.0, keep: int = 3):
        self.folder = Path(folder)
        self._purpose = json.loads(json.dumps({"format": FORMAT, **purpose}))
        self._every, self._keep = every, keep
        self._last = time.perf_counter()
        self.notes: dict[str, Any] = {}  # saved with each position, see `newest_about`

    @contextmanager
    def locked(self) -> Iterator["Checkpoints"]:
        """Lock the folder for this run during the block; the lock of a process that dies is released.

        Raises:
            CheckpointError: Another run has locked it.
        """
        if not group().is_first:  # the first process writes them
            yield self
            return
        with locked(self.folder):
            for scratch in self.folder.glob(".chunk-*"):  # left by a process killed while saving
                scratch.unlink(missing_ok=True)
            yield self

    def newest(self, start: Position, report_like: Callable[[int], Any]) -> Position:
        """Return the newest position that can be read, or the start of the run if there is none.

        Damaged files are renamed, with a warning.

        Args:
            start: The start of the run; its state has the same structure as those in the files.
            report_like: Function from a number of steps to a report with the structure of theirs.

        Raises:
            CheckpointError: The files belong to another run.
        """
        known: list[tuple] = []  # what the first process has parsed
        if not (data := group().from_first(lambda: self._newest(known))):
            return start
        arrays, about = known[0] if known else parsed(data, self.folder)
        like = {"state": start.state, "reports": tuple(map(report_like, about["report_steps"]))}
        like["best_state"] = start.state if about["has_best"] else None
        return replace(start, **in_form_of(like, arrays, self.folder), **_with_nan(about["numbers"]))

    def _newest(self, known: list[tuple]) -> bytes:
        """Return the newest file that can be read, and add what it contains to `known`; nothing if there is none."""
        for path in reversed(paths := _saved(self.folder)):
            try:
                arrays, about = parsed(data := bytes_of(path), path)
            except CheckpointError as error:
                before = "Resuming from the previous one" if path != paths[0] else "There is no other: starting again"
                path.replace(path.with_name(f"damaged-{path.name}"))  # otherwise it would always be the newest
                warnings.warn(f"{error} {before}; it is kept as damaged-{path.name}.", RuntimeWarning, stacklevel=3)
                continue
            self._check_purpose(about["purpose"], path)
            known.append((arrays, about))
            return data
        return b""

    def offer(self, position: Position) -> None:
        """Save a position if the last save was long enough ago, by the clock of the first process."""
        is_due = time.perf_counter() - self._last >= self._every
        if group().shards_parameters:  # all take part
            is_due = bool(group().from_first(lambda: b"due" * is_due))
        if is_due:
            self.save(position)

    def save(self, position: Position) -> None:
        """Save a position, and delete the oldest ones; of several processes, the first one does.

        Raises:
            SaveError: The file system reports an error.
        """
        position = replace(position, state=whole_state(position.state), best_state=whole_state(position.best_state))
        try:
            if group().is_first:
                self._save(position)
        except OSError as error:
            raise SaveError(error, self.folder) from error

    def _save(self, position):
        numbers = plain({name: value for name, value in vars(position).items() if name not in _ARRAYS})
        about = {"purpose": self._purpose, "numbers": numbers, "has_best": position.best_state is not None}
        about["notes"] = plain(self.notes)
        about["report_steps"] = [len(report[0]) for report in position.reports]
        arrays = {name: getattr(position, name) for name in _ARRAYS}
        write_state(
            self.folder / f"chunk-{position.next_chunk:09}-{len(position.history):06}.safetensors", arrays, about
        )
        with suppress(OSError):  # it is saved; old files do no harm
            keep_last(self.folder, self._keep)
        self._last = time.perf_counter()

    def _check_purpose(self, found, path):
        for name, value in self._purpose.items():
            if (difference := _difference(name, found.get(name), value)) is not None:
                raise CheckpointError(
                    f"{path} belongs to another run: its {difference}. "
                    "Choose another folder, or resume with the same settings and data."
                )


@contextmanager
def locked(folder) -> Iterator[None]:
    """Lock a folder for this process during the block; the lock of a process that dies is released.

    Raises:
        CheckpointError: Another process has locked it.
    """
    from filelock import FileLock, Timeout

    Path(folder).mkdir(parents=True, exist_ok=True)
    # A soft lock, which the process itself must remove, would outlive a killed process.
    lock = FileLock(Path(folder) / ".lock", timeout=0, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise CheckpointError(
            f"{folder}: another run is using it right now. Wait until it ends, or choose another folder."
        ) from None
    except (OSError, NotImplementedError) as error:  # on a file system without locks
        message = f"{folder} cannot be locked ({error}): make sure that no other run uses it."
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    try:
        yield
    finally:
        lock.release()


def network_fingerprint(network) -> str:
    """Return what identifies a user-defined network or distribution: a checksum of its arrays."""
    return checksum(np.asarray(leaf) for leaf in jax.tree.leaves(network) if eqx.is_array_like(leaf))


def optimizer_fingerprint(optimizer) -> str:
    """Return what identifies a user-defined optimizer: its first updates.

    It does not distinguish schedules that differ only later, nor optimizers for parameters with particular names.
    """
    parameters, updates = jnp.linspace(-1.0, 1.0, 3), []
    try:
        state = optimizer.init(parameters)
        for gradient in (parameters, parameters**2):
            update, state = optimizer.update(gradient, state, parameters)
            updates += [f"{number:.3g}" for number in np.asarray(update)]
    except (TypeError, ValueError, KeyError, AttributeError):
        return "not known"
    return " ".join(updates)


def samples_saved(folder) -> int:
    """Return how many samples the run in a folder had seen at its last save; 0 if it was never saved."""
    about = newest_about(folder)
    return 0 if about is None else about["numbers"]["samples"]


def newest_about(folder) -> dict[str, Any] | None:
    """Return what the newest readable checkpoint of a folder says about its state; None if there is none."""
    for path in reversed(_saved(folder)):
        with suppress(CheckpointError):
            return read_about(path)
    return None


def keep_last(folder, number: int) -> None:
    """Delete all but this many of the newest checkpoints."""
    for path in _saved(folder)[:-number]:
        path.unlink(missing_ok=True)


def _saved(folder):
    """Return the checkpoints in a folder, the newest last."""
    return sorted(Path(folder).glob("chunk-*.safetensors"))


def _difference(name, before, now):
    """Return how two values differ, in words, or None if they are equal; a missing entry counts as None."""
    if isinstance(before, dict) and isinstance(now, dict):
        part = next((part for part in {**now, **before} if before.get(part) != now.get(part)), None)
        if part is None:
            return None
        name, before, now = f"{name} differ: {part}", before.get(part), now.get(part)
    return f"{name} was {shown(before)}, but is now {shown(now)}" if before != now else None


def _with_nan(numbers):
    """Replace None by NaN: JSON has no infinity, and the bound of extreme held-out rows may be infinite."""
    rows = [{name: math.nan if value is None else value for name, value in row.items()} for row in numbers["history"]]
    return {**numbers, "history": tuple(rows)}
