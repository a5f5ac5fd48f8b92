"""Batches of rows side by side, one a core: a scan over small steps keeps only one of them busy."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from threading import BoundedSemaphore, Event
from typing import Any

import jax
import jax.numpy as jnp


def side_by_side(function: Callable[[Any], Any], inputs: Iterable[Any], stop: Callable[[], None]) -> list[Any]:
    """Return the function of each input, computed by threads; JAX's programs run outside of Python's lock.

    Args:
        function: Of one input.
        inputs: Its inputs.
        stop: Called when one of them fails, or at Ctrl-C, before what still runs is waited for.
    """
    wide = jnp.result_type(float) == jnp.float64  # JAX keeps it for each thread

    def in_thread(value):
        with jax.enable_x64(wide):
            return function(value)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = [pool.submit(in_thread, value) for value in inputs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stop()
            for future in futures:
                future.cancel()
            raise


_ALL_BUT_ONE = BoundedSemaphore(max((os.cpu_count() or 1) - 1, 1))


def leaves_a_core(program: Callable) -> Callable:
    """Let one thread less than there are cores run a program that uses LAPACK.

    A batched call of LAPACK waits inside XLA's pool of threads, one a core, for its own parts: as many such calls as
    there are threads wait for ever (seen with 256 rows on two cores).
    """

    @wraps(program)
    def in_turn(*arguments, **options):
        with _ALL_BUT_ONE:
            return jax.block_until_ready(program(*arguments, **options))

    return in_turn


class SharedProgress:
    """The share of work done over batches that run side by side.

    Args:
        report: Called with the share done; None to be silent.
        num_batches: Number of batches.
    """

    def __init__(self, report: Callable[[float], None] | None, num_batches: int):
        self._report, self._num_batches = report, num_batches
        self._shares: dict[Any, float] = {}
        self._stopped = Event()

    def stop(self) -> None:
        """Make all batches end at their next report."""
        self._stopped.set()

    def of_batch(self, name: Any) -> Callable[[float], None]:
        """Return the function to which a batch reports its own share."""

        def report(share):
            if self._stopped.is_set():
                raise InterruptedError("Another batch failed, or was interrupted.")
            self._shares[name] = max(share, self._shares.get(name, 0.0))
            if self._report is not None:
                self._report(min(1.0, sum(self._shares.values()) / self._num_batches))

        return report
