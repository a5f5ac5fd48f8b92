"""Options of commands that run in several processes."""

import os
from typing import Annotated, Any

from cyclopts import Group, Parameter

from aevb.cli.console import whole

_GROUP = Group("Several hosts", sort_key=2.5)
Coordinator = Annotated[str | None, Parameter(group=_GROUP)]
NumProcesses = Annotated[int | None, Parameter(group=_GROUP, converter=whole)]
ProcessId = Annotated[int | None, Parameter(group=_GROUP, converter=whole)]
PeerTimeout = Annotated[float, Parameter(group=_GROUP)]
# Set by srun and mpirun, with the variable of their number of processes; as in aevb.distributed, which imports JAX.
_LAUNCHERS = {"SLURM_STEP_NODELIST": "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE": "OMPI_COMM_WORLD_SIZE"}


def is_launched(coordinator: str | None, num_processes: int | None, process_id: int | None) -> bool:
    """Whether options or a launcher say that there are several processes."""
    sizes = [os.environ.get(size) or "1" for name, size in _LAUNCHERS.items() if name in os.environ]
    return (coordinator, num_processes, process_id) != (None, None, None) or any(size != "1" for size in sizes)


def start_together(coordinator: str | None, num_processes: int | None, process_id: int | None, seconds: float) -> bool:
    """Connect this process with others, if there are any; return whether it is the first of them.

    Raises:
        ValueError: Options are missing, or a process does not arrive in time.
    """
    if not is_launched(coordinator, num_processes, process_id):
        return True
    from aevb.cli.waiting import waiting

    with waiting("Waiting for the other processes", after=5.0, says=True):
        from aevb.distributed import start

        launch: dict[str, Any] = {"num_processes": num_processes, "process_id": process_id}
        return start(coordinator, **launch, arrival_timeout=seconds).is_first
