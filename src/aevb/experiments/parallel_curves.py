"""Run curves in parallel, one per core, each in its own process."""

import multiprocessing
import os
import queue
import signal
import traceback
from pathlib import Path
from typing import Any

from aevb.data import check_parameter
from aevb.experiments.settings import Curve, Watch
from aevb.experiments.threads import use_one_thread
from aevb.files import check_folder


class ExperimentError(RuntimeError):
    """A curve failed in its process."""


def run_curves(curves: list[Curve], folder: Path, watch: Watch, processes: int | None = None) -> list[dict[str, Any]]:
    """Run curves to their ends, one per core at a time, and return their results.

    After Ctrl-C each curve is saved, and a later call resumes it.

    Args:
        curves: The curves to run.
        folder: The folder of their files.
        watch: Called with the progress.
        processes: How many to run in parallel; None for one per core. A single one runs in this process.

    Raises:
        ExperimentError: One of them failed; the others are saved.
    """
    if processes is not None:
        check_parameter("processes", processes, kind=int, low=1)
    check_folder("folder", folder)
    processes = min(processes or os.cpu_count() or 1, len(curves))
    if processes <= 1:
        return [_run_here(curve, folder, watch) for curve in curves]
    results: dict[int, dict] = {}
    with _Workers(processes, folder) as workers:
        for item in enumerate(curves):
            workers.tasks.put(item)
        while len(results) < len(curves):
            number, kind, value = workers.next_message()
            if kind == "failed":
                raise ExperimentError(f"{curves[number].title}: {value}")
            watch(curves[number], value)
            if kind == "done":
                results[number] = value
    return [results[number] for number in range(len(curves))]


def _run_here(curve, folder, watch):
    from aevb.experiments.curves import run_curve

    about = run_curve(curve, folder, watch)
    watch(curve, about)
    return about


class _Workers:
    """Processes that take curves from a queue until it is empty."""

    def __init__(self, number: int, folder: Path):
        context = multiprocessing.get_context("spawn")
        self.tasks, self._messages = context.Queue(), context.Queue()
        arguments = (self.tasks, self._messages, folder)
        self._processes = [context.Process(target=_work, args=arguments, daemon=True) for _ in range(number)]

    def __enter__(self) -> "_Workers":
        for process in self._processes:
            process.start()
        return self

    def next_message(self):
        while True:
            try:
                return self._messages.get(timeout=5)
            except queue.Empty:
                if not any(process.is_alive() for process in self._processes):
                    raise ExperimentError("the worker processes have died, possibly out of memory.") from None

    def __exit__(self, *_) -> None:
        for process in self._processes:
            if process.pid and process.is_alive():
                os.kill(process.pid, signal.SIGINT)  # each writes its state
        for process in self._processes:
            process.join(timeout=60)


def _work(tasks, messages, folder):
    from aevb.experiments.curves import run_curve

    use_one_thread()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a process started in the background ignores SIGINT
    parent, number = os.getppid(), -1

    def report(curve, about):
        if os.getppid() != parent:
            raise KeyboardInterrupt  # the parent process is gone
        messages.put((number, "progress", about))

    try:
        while True:
            number, curve = tasks.get()
            messages.put((number, "done", run_curve(curve, folder, report)))
    except KeyboardInterrupt:
        messages.cancel_join_thread()
    except Exception:
        messages.put((number, "failed", traceback.format_exc()))
