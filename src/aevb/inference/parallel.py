"""Run batches of rows in parallel, one per core, because a scan over small steps uses only one core."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from threading import BoundedSemaphore, Event
from typing import Any

import jax
import jax.numpy as jnp

from aevb.models.compilation import contains

LAPACK = ("cholesky", "eigh", "eig", "lu", "geqrf", "householder_product", "qr", "svd", "triangular_solve")


def run_in_parallel(function: Callable[[Any], Any], inputs: Iterable[Any], stop: Callable[[], None]) -> list[Any]:
    """Return the function's value for each input, computed in threads; JAX releases the GIL while a program runs.

    Args:
        function: Function of one input.
        inputs: Its inputs.
        stop: Called when one of them fails, or on Ctrl-C, before waiting for those still running.
    """
    wide = jnp.result_type(float) == jnp.float64  # this setting is per thread

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
    """Limit a program that uses LAPACK to one thread fewer than there are cores.

    A batched LAPACK call waits inside XLA's thread pool (one thread per core) for its own parts. If there are as many
    such calls as threads, they deadlock (seen with 256 rows on two cores).
    """

    @wraps(program)
    def in_turn(*arguments, **options):
        with _ALL_BUT_ONE:
            return jax.block_until_ready(program(*arguments, **options))

    return in_turn


def uses_lapack(function: Callable, *arguments) -> bool:
    """Whether a function of these arguments calls LAPACK when it is compiled, see :func:`leaves_a_core`."""
    return contains(jax.make_jaxpr(function)(*arguments).jaxpr, LAPACK)


class SharedProgress:
    """The fraction of work done over batches that run in parallel.

    Args:
        report: Called with the fraction done; None for no reports.
        num_batches: Number of batches.
    """

    def __init__(self, report: Callable[[float], None] | None, num_batches: int):
        self._report, self._num_batches = report, num_batches
        self._shares: dict[Any, float] = {}
        self._stopped = Event()

    def stop(self) -> None:
        """Stop all batches at their next report."""
        self._stopped.set()

    def of_batch(self, name: Any) -> Callable[[float], None]:
        """Return the function that a batch calls to report its own progress."""

        def report(share):
            if self._stopped.is_set():
                raise InterruptedError("Another batch failed, or was interrupted.")
            self._shares[name] = max(share, self._shares.get(name, 0.0))
            if self._report is not None:
                self._report(min(1.0, sum(self._shares.values()) / self._num_batches))

        return report
