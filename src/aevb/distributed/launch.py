"""Start of the processes that work together: found by JAX's own detection of clusters, or given by hand."""

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from aevb.launchers import is_detected, is_launched, place_in
from aevb.parallel import ROWS, group, work_as

ARRIVAL_SECONDS = 300.0  # to wait for all processes at the start
SILENCE_SECONDS = 30.0  # after which a process counts as dead
SHUTDOWN_SECONDS = 24 * 3600  # the first process may write its report for long, while others have nothing more to do


class Launch(NamedTuple):
    """How processes find each other."""

    coordinator: str  # host:port of the first process
    num_processes: int
    process_id: int


def launch_from(
    coordinator: str | None = None, num_processes: int | None = None, process_id: int | None = None
) -> Launch | None:
    """Return how processes find each other: what is given, completed by what Slurm or MPI say; None for one process.

    Nothing of JAX is imported if nothing is given and no launcher is found.

    Raises:
        ValueError: Something is missing.

    Example:
        >>> launch_from("node-1:1234", num_processes=2, process_id=1)
        Launch(coordinator='node-1:1234', num_processes=2, process_id=1)
    """
    if coordinator is not None:
        size, rank = place_in()
        num_processes = size if num_processes is None else num_processes
        process_id = rank if process_id is None else process_id
    found = coordinator, num_processes, process_id
    if None in found and is_detected():
        found = _detected(*found)
    elif found == (None, None, None):
        if is_launched():  # by Open MPI 5, which JAX does not recognize
            raise ValueError(
                "mpirun started several processes, but does not say where they can meet. Give --coordinator HOST:PORT, "
                "in Python start(coordinator='HOST:PORT'), with the host of process 0 and a free port there."
            )
        return None
    if None in found:
        missing = [name for name, value in zip(Launch._fields, found, strict=True) if value is None]
        raise ValueError(
            f"{', '.join(missing)}: missing. Give coordinator, num_processes and process_id together, or start all "
            "processes by srun or mpirun, which know them."
        )
    return _checked(Launch(*found))  # pyright: ignore[reportArgumentType]


def _detected(coordinator, num_processes, process_id):
    from jax._src.clusters import ClusterEnv  # what jax.distributed.initialize itself uses; there is no public name

    return ClusterEnv.auto_detect_unset_distributed_params(coordinator, num_processes, process_id, None, None, 60)[:3]


def _checked(launch: Launch) -> Launch:
    from aevb.distributed.meeting import address_of

    address_of(launch.coordinator)
    if launch.num_processes < 1:
        raise ValueError(f"num_processes={launch.num_processes}: expected at least 1.")
    if not 0 <= launch.process_id < launch.num_processes:
        raise ValueError(
            f"process_id={launch.process_id}: expected a number from 0 to num_processes - 1 = "
            f"{launch.num_processes - 1}."
        )
    return launch


def start(
    coordinator: str | None = None,
    *,
    num_processes: int | None = None,
    process_id: int | None = None,
    arrival_timeout: float = ARRIVAL_SECONDS,
    silence_timeout: float = SILENCE_SECONDS,
    shard_parameters: bool = False,
) -> Any:
    """Let this process work together with others, and with all its devices; call it before anything else of JAX.

    After it, `fit` in each process computes a part of every minibatch; all learn the same model, the one that a single
    process learns, up to the order of sums. Every process must be given the same data and arguments. The first process
    (number 0) alone shows progress and writes checkpoints.

    Args:
        coordinator: ``"host:port"`` of process 0, where the others can reach it. None: Slurm's and Open MPI's, as JAX
            detects them; without these there is one process.
        num_processes: Number of processes; None: that of the launcher.
        process_id: Number of this process, from 0; None: that of the launcher.
        arrival_timeout: Seconds to wait until all processes are there.
        silence_timeout: Seconds after which a process that does not answer counts as dead, which ends all others.
        shard_parameters: Whether large weight matrices, and what the optimizer keeps for them, are divided among all
            devices, for models that do not fit on one; slower, as weights travel in every step.

    Returns:
        The group, with ``num_processes``, ``process_id``, ``is_first`` and ``mesh``.

    Raises:
        PeersError: A process did not arrive in time; the message says which.
        RuntimeError: It was called before, or after JAX was used.
    """
    for name, value in {"arrival_timeout": arrival_timeout, "silence_timeout": silence_timeout}.items():
        if not value > 0:
            raise ValueError(f"{name}={value!r}: expected a positive number of seconds.")
    if group().mesh is not None:
        raise RuntimeError("aevb.distributed.start was called before: call it once, at the beginning of the program.")
    launch = launch_from(coordinator, num_processes, process_id)
    members, me, watch = _connected(launch, arrival_timeout, silence_timeout)

    import jax
    from jax.sharding import AxisType

    from aevb.distributed.group import Group
    from aevb.distributed.meeting import PeersError

    if launch is None and jax.device_count() == 1:
        return group()
    mesh = jax.make_mesh((jax.device_count(),), (ROWS,), axis_types=(AxisType.Auto,))
    work_as(Group(mesh, members, me, watch, shard_parameters))
    with _silent():
        said = group().texts(str(shard_parameters))  # which connects all devices
    for number, other in enumerate(said):
        if other != said[0]:
            raise PeersError(f"shard_parameters={other} in {members[number]}, but {said[0]} in {members[0]}.")
    return group()


@contextmanager
def _silent() -> Iterator[None]:
    """Discard what is written to the standard output: gloo tells there that it has connected."""
    sys.stdout.flush()
    kept, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(null)


def _connected(launch, arrival_seconds, silence_seconds):
    """Return all processes, the number of this one, and the watch, after connecting them."""
    from aevb.distributed.meeting import Member, meet
    from aevb.distributed.watch import Watch

    if launch is None:
        return [Member(0, "this host", os.getpid())], 0, None
    import jax
    from jax._src.xla_bridge import backends_are_initialized  # as jax.distributed.initialize, which is too late here

    if backends_are_initialized():
        raise RuntimeError("aevb.distributed.start must be called before JAX is used: move it to the beginning.")
    met = meet(launch.coordinator, launch.num_processes, launch.process_id, arrival_seconds)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")  # for CPUs; others have their own
    jax.distributed.initialize(
        met.service,
        launch.num_processes,
        launch.process_id,
        initialization_timeout=max(int(arrival_seconds), 10),
        heartbeat_timeout_seconds=max(int(2 * silence_seconds), 10),  # the watch is earlier, and says more
        shutdown_timeout_seconds=SHUTDOWN_SECONDS,
    )
    watch = Watch(met, launch.process_id, silence_seconds)
    atexit.register(watch.leave)
    before = sys.excepthook

    def leave_at_once(*error):
        before(*error)
        leave(1)

    sys.excepthook = leave_at_once
    return met.members, launch.process_id, watch


def leave(code: int) -> None:
    """End this process at once, if it works together with others: JAX would let it wait for them at its end."""
    if group().num_processes == 1:
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    group().leave(has_failed=code != 0)
    os._exit(code)
